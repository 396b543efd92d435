"""What is stored in memory, as the domain sees it."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from ...domain.commands import Item
from ...domain.grouping import Arrival
from ...domain.log import Recorded
from ..codec import decode
from ..documents import decode_spec
from .tables import StoredEvent, StoredItem

NIL = UUID(int=0)


def recorded(job_id: UUID, stream: Iterable[StoredEvent]) -> tuple[Recorded, ...]:
    """A stream as the log gives it: every event decoded from its columns."""
    return tuple(
        Recorded(job_id, each.version, each.event_id, each.xid, decode(job_id, each.row))
        for each in stream
    )


def arrival(item: StoredItem) -> Arrival:
    """An item of the inbox, with the spec of the group that it could open."""
    spec = decode_spec(NIL, item.at, item.spec)
    return Arrival(Item(item.id, item.at, item.item, item.sequence), spec)
