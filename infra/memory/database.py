"""A database in memory: what several stores, producers and readers have in common."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ...projections.status import Summary
from .locks import WouldBlock
from .producer import MemoryProducer
from .pruning import prune
from .session import LOCK_TIMEOUT_SECONDS_DEFAULT, Hub, Session
from .tables import Clock, StoredEvidence, StoredJob, Tables
from .wakeup import Bell, MemoryWakeup


class MemoryDatabase:
    """The tables of one queue, in memory, with transactions like those of PostgreSQL.

    ``clock`` gives aware datetimes: ``lambda: datetime.now(UTC)``, or a simulator's.  A statement
    that has to wait for another thread's transaction gives up after ``lock_timeout`` seconds;
    see ``session.py`` for what waiting means.
    """

    def __init__(self, clock: Clock, lock_timeout: float = LOCK_TIMEOUT_SECONDS_DEFAULT) -> None:
        self.hub = Hub(Tables(clock), lock_timeout)
        self.bell = Bell()

    def begin(self) -> MemoryProducer:
        """A caller's transaction, to enqueue in: commit it, roll it back, or use it in ``with``."""
        return MemoryProducer(Session(self.hub))

    def wakeup(self) -> MemoryWakeup:
        """A listener that any ``ring`` in this process wakes."""
        return MemoryWakeup(self.bell)

    def on_step(self, seam: Callable[[str], None]) -> None:
        """Call ``seam`` with the name of each step; what it raises happens there.

        Steps are ``begin``, the name of a transaction's method, ``commit`` (nothing is committed
        yet) and ``committed`` (it is, but the caller does not know).
        """
        self.hub.seam = seam

    def on_block(self, blocked: Callable[[WouldBlock], None]) -> None:
        """Call ``blocked`` instead of waiting for a lock, then try again."""
        self.hub.blocked = blocked

    def waiting(self) -> int:
        """How many statements wait for a lock now."""
        with self.hub.condition:
            return self.hub.waiting

    def prune(self, older_than: timedelta) -> int:
        """Prune the streams of jobs that ended so long ago; how many there were."""
        session = Session(self.hub)
        pruned = session.run("prune", lambda: prune(session, older_than))
        session.commit()
        return pruned

    def summaries(self) -> list[Summary]:
        """What is kept of jobs that have ended, in order of id."""
        with self.hub.condition:
            return [kept for _, kept in sorted(self.hub.tables.summaries.items())]

    def jobs(self) -> list[StoredJob]:
        """The committed claim rows in order of ``seq``."""
        with self.hub.condition:
            return sorted(self.hub.tables.jobs.values())

    def items(self) -> int:
        """How many committed items wait in the inbox."""
        with self.hub.condition:
            return len(self.hub.tables.inbox)

    def audit(self) -> list[StoredEvidence]:
        """The committed audit log in order of its numbers."""
        with self.hub.condition:
            return sorted(self.hub.tables.audit, key=lambda line: line.id)
