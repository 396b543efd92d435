"""How an open transaction of the in-memory database sees, locks, waits, commits and rolls back.

Waiting.  A write that meets somebody else's lock waits until the other transaction has ended, as
in PostgreSQL, when that one was begun by another thread; after ``lock_timeout`` seconds it is
StoreUnavailable, and so is a deadlock, for the transaction that closes the circle.  When the same
thread has begun the other transaction, waiting would last for ever: WouldBlock is raised at once,
so a single thread is deterministic.  A scheduler that runs transactions by turns sets ``blocked``:
it is called, with nothing locked inside, instead of any waiting, and the statement is tried again
when it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Condition, RLock
from time import monotonic
from typing import TypeVar
from uuid import UUID

from attrs import define, field

from ...projections.status import Summary
from ..ports import DataRefused, Evidence, StoreUnavailable
from .locks import Held, Locks, Owner, WouldBlock
from .storable import check_json, check_text
from .tables import (
    Overlay,
    StoredEvent,
    StoredEvidence,
    StoredItem,
    StoredJob,
    StoredRequest,
    StoredWorker,
    Tables,
)

R = TypeVar("R")

LOCK_TIMEOUT_SECONDS_DEFAULT = 10.0

COMMITTED = "committed"
ROLLED_BACK = "rolled back"
CRASHED = "lost with its connection"


def _no_seam(name: str) -> None:
    """Let everything through."""


@define(eq=False)
class Hub:
    """What all transactions of one database share.

    ``seam`` is called with the name of each step (``begin``, a method's name, ``commit`` before
    and ``committed`` after the commit) and may raise StoreUnavailable to play an outage there.
    ``waiting`` counts the statements that wait for a lock now.
    """

    tables: Tables
    lock_timeout: float = LOCK_TIMEOUT_SECONDS_DEFAULT
    seam: Callable[[str], None] = _no_seam
    blocked: Callable[[WouldBlock], None] | None = None
    locks: Locks = field(factory=Locks)
    condition: Condition = field(factory=lambda: Condition(RLock()))
    waiting: int = 0


class Session:
    """One open transaction: its overlays, its locks, its time."""

    def __init__(self, hub: Hub) -> None:
        hub.seam("begin")
        tables = hub.tables
        self.hub = hub
        self.jobs: Overlay[UUID, StoredJob] = Overlay(tables.jobs)
        self.events: Overlay[UUID, tuple[StoredEvent, ...]] = Overlay(tables.events)
        self.inbox: Overlay[int, StoredItem] = Overlay(tables.inbox)
        self.workers: Overlay[str, StoredWorker] = Overlay(tables.workers)
        self.checkpoints: Overlay[str, datetime] = Overlay(tables.checkpoints)
        self.requests: Overlay[str, StoredRequest] = Overlay(tables.requests)
        self.summaries: Overlay[UUID, Summary] = Overlay(tables.summaries)
        self.audit: list[StoredEvidence] = []
        self.ended: str | None = None
        with hub.condition:
            self.owner = Owner(next(tables.xids))
            self.at = tables.now()

    def run(self, name: str, act: Callable[[], R]) -> R:
        """Run one statement.  ``act`` locks before it writes, so that it can be tried again."""
        self.hub.seam(name)
        give_up = monotonic() + self.hub.lock_timeout
        while True:
            with self.hub.condition:
                self._check_open(name)
                try:
                    return act()
                except Held as held:
                    block = WouldBlock(held.key, held.holder)
                    if self.hub.blocked is None:
                        self._wait(held, block, give_up)
                        continue
                except DataRefused:
                    self._end("rolled back because its data was refused")
                    raise
            self.hub.blocked(block)

    def read_time(self) -> datetime:
        """The time by the clock, which is the transaction's from now on."""
        self.at = self.hub.tables.now()
        return self.at

    def record(self, evidence: Evidence) -> None:
        """Add a line to the audit log."""
        check_json("detail", evidence.detail)
        check_text("worker", evidence.worker or "")
        number = next(self.hub.tables.audit_ids)
        at = self.hub.tables.now()
        self.audit.append(StoredEvidence(number, at, self.owner.xid, evidence))

    def lock(self, kind: str, key: object, *, shared: bool = False) -> None:
        """Lock a thing to the end of the transaction.  Raises Held when it must wait."""
        self.hub.locks.take((kind, key), self.owner, shared=shared)

    def is_alive(self, worker: str) -> bool:
        """Whether a worker is on the list and alive; it cannot be buried until the end."""
        self.lock("worker", worker, shared=True)
        row = self.workers.get(worker)
        return row is not None and row.alive

    def is_quiet(self, key: str) -> bool:
        """Whether no other transaction holds the lock of an ordering key, shared or alone."""
        return self.hub.locks.holder(("order", key), self.owner) is None

    def try_lock(self, kind: str, key: object) -> bool:
        """Lock a thing to the end of the transaction unless another holds it; whether it did."""
        return self.hub.locks.attempt((kind, key), self.owner)

    def commit(self) -> None:
        """Make the writes visible and give back the locks.

        Nothing happens when it has been committed or rolled back before.  Raises StoreUnavailable
        when an error, or a crash, has rolled it back.
        """
        with self.hub.condition:
            if self.ended in (COMMITTED, ROLLED_BACK):
                return
            self._check_open("commit")
            try:
                self.hub.seam("commit")
            except BaseException:
                self._end(ROLLED_BACK)
                raise
            # The connection may have been lost during that step.
            self._check_open("commit")
            tables = (self.jobs, self.events, self.inbox, self.workers, self.checkpoints)
            for table in (*tables, self.requests, self.summaries):
                table.commit()
            self.hub.tables.audit.extend(self.audit)
            self._end(COMMITTED)
        self.hub.seam("committed")

    def rollback(self, how: str = ROLLED_BACK) -> None:
        """Undo every write and give back the locks; ``how`` tells later calls what happened."""
        with self.hub.condition:
            if self.ended is None:
                self._end(how)

    def _end(self, how: str) -> None:
        self.ended = how
        self.hub.locks.release(self.owner)
        self.hub.condition.notify_all()

    def _check_open(self, name: str) -> None:
        if self.ended is not None:
            raise StoreUnavailable(
                f"cannot {name}: this transaction was {self.ended}. Begin another."
            )

    def _wait(self, held: Held, block: WouldBlock, give_up: float) -> None:
        """Wait a moment for whoever holds the lock, or raise when that cannot help."""
        locks, owner = self.hub.locks, self.owner
        if locks.closes_circle(owner, held.holder):
            self._end("rolled back because of a deadlock")
            raise StoreUnavailable(f"deadlock: {block}")
        if held.holder.thread == owner.thread:
            raise block
        left = give_up - monotonic()
        if left <= 0:
            self._end("rolled back because of a lock time-out")
            raise StoreUnavailable(f"lock time-out: {block}")
        owner.waits_for = held.key
        self.hub.waiting += 1
        try:
            self.hub.condition.wait(left)
        finally:
            owner.waits_for = None
            self.hub.waiting -= 1
