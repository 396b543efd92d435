"""One open transaction of the in-memory database.

READ COMMITTED at statement grain: each call sees what is committed at its start and the own
writes.  Where the port says "left out", what another open transaction has locked is left out;
where PostgreSQL would wait for a row, ``Session.run`` decides what waiting means here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from ...domain.commands import Item
from ...domain.evolve import fold
from ...domain.grouping import Arrival
from ...domain.job import Job
from ...domain.log import Change, Recorded
from ...projections.row import from_row, to_row
from ..codec import decode, decode_spec, encode
from ..ports import Claim, DataRefused, Evidence, KeyArrivals
from .picking import by_key, due_jobs, leased_jobs, open_group, take_free
from .session import Session
from .storable import check_event, check_json, check_row, check_text
from .tables import GroupKey, StoredEvent, StoredEvidence, StoredItem, StoredJob, Tables

NIL = UUID(int=0)

P = ParamSpec("P")
R = TypeVar("R")


def statement(
    method: Callable[Concatenate[MemoryTransaction, P], R],
) -> Callable[Concatenate[MemoryTransaction, P], R]:
    """Run a method as one statement: alone, waiting for locks before it writes anything."""

    @wraps(method)
    def run(self: MemoryTransaction, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.session.run(method.__name__, lambda: method(self, *args, **kwargs))

    return run


class MemoryTransaction:
    """Implements ``ports.Transaction``; what the port promises is not said again here."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def at(self) -> datetime:
        """The time when it began or last locked something."""
        return self.session.at

    @property
    def xid(self) -> int:
        """The number of this transaction, as its events carry it."""
        return self.session.owner.xid

    @statement
    def append(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Compare-and-set every stream and append; the changes that missed are returned."""
        ids = sorted({change.after.id for change in changes})
        assert len(ids) == len(changes), "a batch holds one change of a stream at most"
        for job_id in ids:
            if self._stands_elsewhere(job_id, changes):
                continue
            self.session.lock("job", job_id)
        missed: list[Change] = []
        for change in sorted(changes, key=lambda each: each.after.id):
            if not self._write(change):
                missed.append(change)
        return missed
