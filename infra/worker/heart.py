"""What a worker's heartbeat does: beat, renew, and notice who died.

It runs beside the worker, in a small child process that no handler can hold up, and lives a little
longer than it: when the worker is gone, the child expires its leases at once.  The code takes the
monotonic second as an argument and is the same in the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from uuid import UUID

from attrs import define, field

from ...domain.commands import Renew
from ...domain.decide import change
from ...domain.job import Job
from ...domain.log import Change
from ...domain.pacing import Observer, renew_until
from ...domain.values import ExpiryCause
from ..documents import dumps
from ..ports import Evidence, Store
from .expiry import expire_all
from .settings import WorkerSettings

LEASES_MAX = 10_000
BURIAL_BATCH = 1_000


class Pulse(Enum):
    """What a beat found: the worker lives on, or was declared dead by somebody."""

    ALIVE = "alive"
    BURIED = "buried"


@define
class Heart:
    """The heartbeat of one worker on its own store."""

    store: Store
    worker: str
    settings: WorkerSettings
    _observer: Observer = field(init=False)
    _burying: dict[str, None] = field(factory=dict[str, None])
    _deadlines: dict[UUID, datetime] = field(factory=dict[UUID, datetime])
    _seen_at: datetime | None = None

    def __attrs_post_init__(self) -> None:
        self._observer = Observer(self.settings.dead_after)

    def pulse(self, now: float) -> tuple[Pulse, tuple[Change, ...]]:
        """Beat once at monotonic second ``now``; also the ends of leases that this caused.

        Raises StoreUnavailable; the next beat makes up for it.
        """
        if not self.store.beat(self.worker):
            return Pulse.BURIED, ()
        self._observer.beaten(now)
        overrun = () if self._has_nothing() else self._tend()[1]
        if not self.settings.death_detection:
            return Pulse.ALIVE, tuple(overrun)
        dead = self._observer.dead(self.store.beats(), now)
        unfinished = [*self._burying, *(each for each in dead if each not in self._burying)]
        changes = [
            each for worker in unfinished if worker != self.worker for each in self.bury(worker)
        ]
        return Pulse.ALIVE, (*overrun, *changes)

    def renew(self) -> int:
        """Renew the leases that need it; how many were."""
        renewed, _ = self._tend()
        return renewed

    @property
    def is_burying(self) -> bool:
        """Whether a burial that was begun is not finished."""
        return bool(self._burying)

    def signs_of_life(self) -> None:
        """The worker was heard of: what it holds is its own business again."""
        self._deadlines = {}

    @property
    def overran(self) -> bool:
        """Whether a run passed its time-out, and ``overrun`` more, since the worker was heard of.

        Also when its lease has been ended by others in between: the worker is stuck all the same.
        """
        at = self._seen_at
        return at is not None and any(
            deadline + self._overrun <= at for deadline in self._deadlines.values()
        )

    @property
    def _overrun(self) -> timedelta:
        return timedelta(seconds=self.settings.overrun)

    def _has_nothing(self) -> bool:
        """Whether there is nothing to renew or to end; one short question, most of the time."""
        return not self._deadlines and self.store.is_idle(self.worker)

    def _tend(self) -> tuple[int, Sequence[Change]]:
        """Renew what is young enough, and end what the worker itself should have ended by now."""
        with self.store.transaction() as tx:
            renewals: list[Change] = []
            overrun: list[Job] = []
            deadlines = dict(self._deadlines)
            for job in tx.leased_by(self.worker, LEASES_MAX):
                if job.lease is None or job.deadline is None:
                    continue
                deadlines[job.id] = job.deadline
                if job.deadline + self._overrun <= tx.at:
                    overrun.append(job)
                elif (until := renew_until(job, tx.at)) is not None:
                    asked = change(job, Renew(tx.at, job.lease.token, until))
                    if asked.events:
                        renewals.append(asked)
            if renewals:
                tx.append(renewals)
            ended = expire_all(tx, overrun, ExpiryCause.TIMED_OUT) if overrun else ()
            self._deadlines, self._seen_at = deadlines, tx.at
        return len(renewals), ended

    def bury(self, worker: str) -> Sequence[Change]:
        """Declare a worker dead and expire its leases, in batches.

        Once begun it is finished: when the store goes away in the middle, or somebody has locked
        what is left, the next pulse goes on, although the worker is not among the living then.
        """
        self._burying[worker] = None
        changes: list[Change] = []
        while True:
            with self.store.transaction() as tx:
                if tx.bury(worker):
                    detail = dumps({"noticed_by": self.worker})
                    tx.record([Evidence("worker_died", detail, None, worker)])
                batch = expire_all(tx, tx.leased_by(worker, BURIAL_BATCH), _LOST)
                # A handler's transaction may hold its row for a moment longer than its process.
                more = tx.holds_leases(worker)
            changes.extend(batch)
            if more and not batch:
                return changes
            if not more:
                break
        del self._burying[worker]
        return changes


_LOST = ExpiryCause.WORKER_LOST
