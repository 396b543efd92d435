"""Broken stores: what a database would have prevented, or a statement should have asked."""

# A planted bug gets at what no honest code may touch.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from leasebook.domain import Change, JobSpec
from leasebook.infra.caller_ports import Receipt
from leasebook.infra.codec import encode
from leasebook.infra.memory import MemoryProducer, MemoryTransaction, keys
from leasebook.infra.memory.session import Session
from leasebook.infra.memory.tables import StoredEvent, StoredJob
from leasebook.projections.row import to_row

from .rules import Planted, always, both


def projection_first() -> Planted:
    """The row is written outside the transaction, just before the events."""
    write: Callable[[MemoryTransaction, Change], int] = MemoryTransaction.write

    def early(self: MemoryTransaction, change: Change) -> int:
        row, tables = to_row(change.after), self.session.hub.tables
        standing = tables.jobs.get(change.after.id)
        if row is not None and standing is not None:
            tables.jobs[change.after.id] = StoredJob(standing.seq, *row)
        return write(self, change)

    return patch.object(MemoryTransaction, "write", early)


def append_without_compare() -> Planted:
    """Events are appended at the version that was decided on, whatever stands there by now."""

    def blindly(self: MemoryTransaction, change: Change) -> int:
        session, job_id = self.session, change.after.id
        stream = list(session.events.get(job_id) or ())
        first = 1 if change.before is None else change.before.version + 1
        for version, event in enumerate(change.events, first):
            number = next(session.hub.tables.event_ids)
            stream.append(StoredEvent(version, number, self.xid, encode(event)))
        session.events.put(job_id, tuple(stream))
        row = to_row(change.after)
        if row is None:
            session.jobs.remove(job_id)
        else:
            session.jobs.put(job_id, StoredJob(stream[0].event_id, *row))
        return stream[0].event_id

    return both(
        patch.object(MemoryTransaction, "_stands", always(True)),
        patch.object(MemoryTransaction, "write", blindly),
    )


def group_without_key_lock() -> Planted:
    """Two collectors of one key see the same items, and both find no open group."""
    try_lock: Callable[[Session, str, object], bool] = Session.try_lock

    def lax(self: Session, kind: str, key: object) -> bool:
        return kind == "group" or try_lock(self, kind, key)

    return patch.object(Session, "try_lock", lax)


def dead_go_on_leasing() -> Planted:
    """A worker does not ask whether it has been declared dead before it leases."""
    return patch.object(Session, "is_alive", always(True))


def enqueue_beside_the_transaction() -> Planted:
    """An item is there at once, and stays when its producer rolls back."""
    accept: Callable[[MemoryProducer, JobSpec, Any], Receipt] = MemoryProducer._accept_item

    def at_once(self: MemoryProducer, spec: JobSpec, at: Any) -> Receipt:
        receipt = accept(self, spec, at)
        self.session.inbox.commit()
        return receipt

    return patch.object(MemoryProducer, "_accept_item", at_once)


def requests_are_forgotten() -> Planted:
    """A job is made for every try of a request, because nobody notes that it was made."""
    return patch.object(MemoryProducer, "_remember", always(None))


def unique_keys_are_not_locked() -> Planted:
    """Who enqueues does not ask whether somebody has the unique key."""
    return patch.object(keys, "_lock_keys", always({}))
