"""What the worker and the producers need of the world, before anybody provides it.

Synchronous and small, so that PostgreSQL, the in-memory store and a simulator can stand behind it
alike.  Implementations answer questions; they hold no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from attrs import frozen

from ..domain.grouping import Arrival
from ..domain.job import Job
from ..domain.log import Change, Recorded
from ..domain.ordering import Ahead
from ..projections.depth import Depth
from .enrolment import Enrolment


class StoreUnavailable(Exception):
    """The store could not answer: connection lost, server down, lock or statement time-out.

    Nothing is known of the transaction in hand: its commit may have gone through.
    """


class DataRefused(Exception):
    """The store refused a batch because of what is in it.  The transaction is rolled back.

    ``reason`` is bounded and holds no argument of a job.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@frozen
class Claim:
    """What a worker asks of the queue.

    ``queues`` in the order in which they are served this time; ``names`` are the job names it has
    handlers for; at most ``limit`` jobs, of which at most ``suspects`` were interrupted before.
    ``since`` is the remembered floor of ``due_at``, None for a full sweep; it does not hold for
    suspects, who wait below it for their turn.  Jobs with one of the ordering keys ``without`` are
    left out, and those that come after one of ``parents``; but not an open group of such a key,
    which may have to be closed before anything of the key can go on.

    ``worker`` is who is to have them: nothing is given to one that is not alive, and one that is
    cannot be buried before the transaction ends.  Without one nobody is asked about.
    """

    queues: tuple[str, ...]
    names: tuple[str, ...]
    limit: int
    suspects: int
    since: datetime | None = None
    without: tuple[str, ...] = ()
    parents: tuple[UUID, ...] = ()
    worker: str | None = None


@frozen
class KeyArrivals:
    """The items of one group key that this transaction may collect, and the key's open group."""

    open_group: Job | None
    arrivals: tuple[Arrival, ...]


@frozen
class Waiting:
    """Jobs that wait for others, and whether all there are could be had."""

    jobs: Sequence[Job]
    reached: bool


@frozen(order=True)
class Stranger:
    """Due jobs that a worker leaves alone: it knows not their name, or not their ``format``."""

    name: str
    format: int | None


@frozen
class Outlook:
    """What an idle worker wants to know.

    ``next_due`` is when the next waiting job of its queues and names is due, ``next_lease_end``
    when the next lease of anybody ends (both may have passed), ``inbox`` whether items wait,
    ``strangers`` what is among the first due jobs that it leaves alone, in order of name.
    """

    at: datetime
    next_due: datetime | None
    next_lease_end: datetime | None
    inbox: bool
    strangers: tuple[Stranger, ...] = ()


@frozen
class Evidence:
    """A line of the audit log, beside the streams; ``detail`` is a small JSON document."""

    kind: str
    detail: str
    job_id: UUID | None = None
    worker: str | None = None


class Transaction(Protocol):
    """One open transaction of a worker.  It ends with the context that gave it."""

    @property
    def at(self) -> datetime:
        """The database's time, read when the transaction began or last locked something."""
        ...

    def append(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Compare-and-set every stream and append; the changes that missed are returned.

        A miss is a stream that does not stand at ``change.before.version``; nothing of it is
        written.  Raises DataRefused when the store cannot hold what is in the batch.
        """
        ...

    def load(self, ids: Sequence[UUID]) -> dict[UUID, Job]:
        """The newest state of jobs, from their rows or, finished, from their streams."""
        ...

    def locked(self, ids: Sequence[UUID]) -> set[UUID]:
        """Which of these rows others have locked; the rest, where there is a row, is ours now."""
        ...

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of a job in order of version."""
        ...

    def claim(self, wanted: Claim) -> Sequence[Job]:
        """Due waiting jobs in claim order, locked; what others hold is left out."""
        ...

    def collectable(self, limit: int) -> Sequence[KeyArrivals]:
        """Up to ``limit`` of the oldest items by key, taken out of the inbox, keys locked.

        A key that another collector holds, or whose open group is locked, is left out, and so is an
        item older than the newest of its key's open group: it came late and waits for the next.
        """
        ...

    def ahead(self, jobs: Sequence[Job], settled: Mapping[str, int]) -> Mapping[UUID, Ahead]:
        """What these claimed jobs, with ordering keys or parents, find before them.

        Left out is a job of which that cannot be known now: a producer of its key has not ended
        yet, another job of the key runs, or what stands before it is in somebody else's hands.
        Up to the numbers in ``settled``, by key, no producer can come any more.  ``at`` moves on,
        past the end of everything that is not there any more.
        """
        ...

    def waited_for(self) -> Sequence[Job]:
        """The jobs that have ended in this transaction and that others wait for, each once."""
        ...

    def waiting(self, blockers: Sequence[UUID], parents: Sequence[UUID]) -> Waiting:
        """The jobs that ``blockers`` block, and those blocked or held that come after ``parents``.

        They are locked in order of id; what others hold is left out.
        """
        ...

    def stranded(self, limit: int) -> Sequence[Job]:
        """Blocked jobs whose blocker has ended or is held for good, locked."""
        ...

    def overdue(self, limit: int) -> Sequence[Job]:
        """Leased jobs whose lease has ended, of any queue and name, locked in order of id."""
        ...

    def leased_by(self, worker: str, limit: int) -> Sequence[Job]:
        """Leased jobs of one worker, locked in order of id."""
        ...

    def holds_leases(self, worker: str) -> bool:
        """Whether a worker holds any lease, of a locked row too."""
        ...

    def is_alive(self, worker: str) -> bool:
        """Whether the worker's own row is alive; it cannot be buried before this one ends."""
        ...

    def bury(self, worker: str) -> bool:
        """Mark a worker dead; False when it already was, or is gone."""
        ...

    def lead(self, duty: str) -> bool:
        """Try to be the only one to do ``duty`` until this transaction ends."""
        ...

    def due_again(self, duty: str, seconds: float) -> float:
        """0.0 when ``duty`` was last done ``seconds`` ago or more, and is stamped as done now.

        Otherwise in how many seconds it will be due.  Only for who leads the duty.
        """
        ...

    def depth(self) -> Depth:
        """How deep the whole queue is, by one count of everything."""
        ...

    def record(self, evidence: Sequence[Evidence]) -> None:
        """Append to the audit log."""
        ...


class Store(Protocol):
    """The queue as a worker sees it.  One thread uses one store."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin; commit when the block ends, roll back when it raises; raises StoreUnavailable."""
        ...

    def outlook(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        since: datetime | None = None,
        sample: int = 0,
    ) -> Outlook:
        """One read-only look at what is next, of what is due at ``since`` or later.

        The first ``sample`` due jobs of each queue and priority, and those from ``since`` on, are
        looked through for strangers; with none the answer names no strangers.
        """
        ...

    def enroll(self, worker: Enrolment) -> None:
        """Report a new worker for work, with its start in the audit log."""
        ...

    def leave(self, worker: str) -> None:
        """Take a worker off the list after a clean stop, with the stop in the audit log."""
        ...

    def beat(self, worker: str) -> bool:
        """Count one heartbeat; False when the worker is not on the list or was declared dead."""
        ...

    def is_idle(self, worker: str) -> bool:
        """Whether a worker is alive and holds no lease, of a locked row either."""
        ...

    def beats(self) -> dict[str, int]:
        """The beat counts of all living workers."""
        ...

    def settle_key(self, key: str, patience: float) -> int | None:
        """The newest number in the order of a key, once no producer of the key is left.

        Waits for them at most ``patience`` seconds, holding nothing else; None: they were still
        there.
        """
        ...

    def close(self) -> None:
        """Give back what the store holds of the world."""
        ...


class Wakeup(Protocol):
    """The bell.  Hearing is best effort: polling finds everything that a lost ring told of."""

    def wait(self, seconds: float) -> bool:
        """Wait until rung, at most ``seconds``; whether it was rung."""
        ...

    def ring(self) -> None:
        """Wake whoever waits, in any process.  Never inside a caller's transaction."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Log(Protocol):
    """The log as readers see it."""

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of one job in order of version; empty when there is none."""
        ...
