"""Items of the inbox as the domain sees them: an item, and the spec of the group it could open."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from uuid import UUID

from ...domain.commands import Item
from ...domain.grouping import Arrival
from ...domain.job import JobSpec
from ..documents import decode_spec

NIL = UUID(int=0)


def arrival_of(item_id: int, at: datetime, item: str, spec: str, sequence: int | None) -> Arrival:
    """One row of the inbox.  Items of a key mostly carry the same spec, which is read once."""
    like = _spec(spec)
    stamped = JobSpec(
        NIL,
        like.name,
        like.args,
        at,
        like.queue,
        like.priority,
        like.policy,
        like.label,
        like.owner,
        like.subject,
        like.expires_at,
        like.group_key,
        like.group,
        like.hold_until,
        ordering_key=like.ordering_key,
        on_hold=like.on_hold,
    )
    return Arrival(Item(item_id, at, item, sequence), stamped)


@lru_cache(maxsize=2_000)
def _spec(document: str) -> JobSpec:
    return decode_spec(NIL, datetime.min, document)
