"""The only in-memory store: for the simulator, and for users' tests without a server."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Self

from ..documents import dumps
from ..enrolment import Enrolment
from ..ports import DataRefused, Evidence, Outlook, Stranger
from .database import MemoryDatabase
from .order import in_line
from .picking import leased_jobs, unknown_names, waits
from .session import CRASHED, Session
from .tables import Clock, StoredWorker
from .transaction import MemoryTransaction


class MemoryStore:
    """Implements ``ports.Store`` on a database of its own, or with ``on`` a shared one.

    One thread uses one store, as with a connection; any number may stand on one database.
    """

    def __init__(self, clock: Clock) -> None:
        self.database = MemoryDatabase(clock)
        self._session: Session | None = None

    @classmethod
    def on(cls, database: MemoryDatabase) -> Self:
        """Another store on ``database``, like another connection to it."""
        store = cls(database.hub.tables.clock)
        store.database = database
        return store

    @contextmanager
    def transaction(self) -> Generator[MemoryTransaction]:
        """Begin; commit when the block ends, roll back when it raises."""
        session = Session(self.database.hub)
        self._session = session
        try:
            yield MemoryTransaction(session)
            session.commit()
        finally:
            session.rollback()
            self._session = None

    def crash(self) -> None:
        """Lose the connection: an open transaction is rolled back, and its next call fails."""
        if self._session is not None:
            self._session.rollback(CRASHED)

    def outlook(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        since: datetime | None = None,
        sample: int = 0,
    ) -> Outlook:
        """One read-only look at what is next, of what is due at ``since`` or later.

        A memory has no formats but its own, so that strangers are unknown names.
        """
        with self.transaction() as transaction:
            session = transaction.session

            def look() -> Outlook:
                rows = list(session.jobs.values())
                due = [
                    row.state.due_at
                    for row in rows
                    if waits(row, queues, names)
                    and (since is None or row.state.suspect or row.state.due_at >= since)
                ]
                ends = [row.state.due_at for row in leased_jobs(rows)]
                inbox = any(True for _ in session.inbox.values())
                next_end = min(ends, default=None)
                at = session.read_time()
                unknown = unknown_names(rows, queues, names, at) if sample > 0 else []
                strangers = tuple(Stranger(name, None) for name in unknown)
                return Outlook(at, min(due, default=None), next_end, inbox, strangers)

            return session.run("outlook", look)

    def enroll(self, worker: Enrolment) -> None:
        """Report a new worker for work, with its start in the audit log."""
        evidence = Evidence("worker_started", dumps(worker.detail()), worker=worker.id)
        with self.transaction() as transaction:
            session = transaction.session

            def arrive() -> None:
                session.lock("worker", worker.id)
                if session.workers.get(worker.id) is not None:
                    raise DataRefused(f"worker {worker.id!r} is on the list already")
                session.workers.put(worker.id, StoredWorker(worker, 0, True))
                session.record(evidence)

            session.run("enroll", arrive)

    def leave(self, worker: str) -> None:
        """Take a worker off the list after a clean stop, with the stop in the audit log."""
        with self.transaction() as transaction:
            session = transaction.session

            def go() -> None:
                session.lock("worker", worker)
                session.workers.remove(worker)
                session.record(Evidence("worker_stopped", "{}", worker=worker))

            session.run("leave", go)

    def beat(self, worker: str) -> bool:
        """Count one heartbeat; False when the worker is not on the list or was declared dead."""
        with self.transaction() as transaction:
            session = transaction.session

            def count() -> bool:
                # Shared, like the lock of ``is_alive``: a beat does not wait for the worker's tick.
                session.lock("worker", worker, shared=True)
                row = session.workers.get(worker)
                if row is None or not row.alive:
                    return False
                session.workers.put(worker, row._replace(beats=row.beats + 1))
                return True

            return session.run("beat", count)

    def is_idle(self, worker: str) -> bool:
        """Whether a worker is alive and holds no lease, of a locked row either."""
        with self.transaction() as transaction:
            session = transaction.session

            def look() -> bool:
                row = session.workers.get(worker)
                alive = row is not None and row.alive
                return alive and not leased_jobs(session.jobs.values(), worker)

            return session.run("is_idle", look)

    def beats(self) -> dict[str, int]:
        """The beat counts of all living workers."""
        with self.transaction() as transaction:
            workers = transaction.session.workers

            def living() -> dict[str, int]:
                return {row.enrolment.id: row.beats for row in workers.values() if row.alive}

            return transaction.session.run("beats", living)

    def settle_key(self, key: str, patience: float) -> int | None:
        """The newest number in the order of a key, once no producer of the key is left.

        (A memory does not wait: whoever holds the key may be of this very thread.)
        """
        with self.transaction() as transaction:
            session = transaction.session

            def look() -> int | None:
                if not session.is_quiet(key):
                    return None
                rows = (row.seq for row in session.jobs.values() if in_line(row, key))
                items = (each for each in session.inbox.values() if each.ordering_key == key)
                return max((*rows, *(each.sequence or 0 for each in items)), default=0)

            return session.run("settle_key", look)

    def close(self) -> None:
        """Roll back what is open."""
        self.crash()
