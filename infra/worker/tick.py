"""The worker's only transaction: append what finished, collect, pick, decide, lease, commit.

Only the first step may wait for a row.  Nothing here reads a clock or a queue of its own: the
caller brings what finished and how many slots are free, and the simulator calls the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from attrs import define, field, frozen

from ...domain.admission import admit, suspects_allowed
from ...domain.commands import ExpireLease, Release, TakeLease
from ...domain.decide import change
from ...domain.decide.collection import collect
from ...domain.job import Job
from ...domain.log import Change
from ...domain.states import State
from ...domain.values import ExpiryCause, ReleaseReason
from ..ports import Claim, DataRefused, Store, StoreUnavailable, Transaction
from .answers import Broke, Report
from .settings import WorkerSettings
from .settle import Refusal, Settled, settle


@frozen
class Ask:
    """What a tick is asked to do.

    ``reports`` are the runs that ended, ``running`` the jobs that run on, ``slots`` how many more
    may start.  ``collect`` and ``sweep`` (of the due-time floor) are the caller's pacing.
    """

    reports: Sequence[Report]
    running: Collection[Job]
    slots: int
    collect: bool
    full_sweep: bool


@frozen
class Ticked:
    """What a committed tick did.  ``more`` tells that the queue may hold more that is due."""

    at: datetime
    leased: tuple[Job, ...] = ()
    settled: Settled = field(factory=Settled)
    ended: tuple[Change, ...] = ()
    lost: tuple[Job, ...] = ()
    collected: int = 0
    more: bool = False
    buried: bool = False


@define
class Ticker:
    """One worker's ticks on one store."""

    store: Store
    worker: str
    queues: tuple[str, ...]
    names: tuple[str, ...]
    settings: WorkerSettings
    new_id: Callable[[], UUID]
    _doubt: bool = False
    _floor: datetime | None = None
    _turn: int = 0

    def tick(self, ask: Ask) -> Ticked:
        """Run one tick.  Raises StoreUnavailable: then nothing is known, and the reports stay."""
        try:
            with self.store.transaction() as tx:
                ticked = self._steps(tx, ask)
        except StoreUnavailable:
            # The commit may have gone through with leases that nobody here knows of.
            self._doubt = True
            raise
        except DataRefused as refusal:
            return self._isolate(ask, refusal)
        self._doubt = False
        return ticked

    def _steps(self, tx: Transaction, ask: Ask) -> Ticked:
        settled = settle(tx, ask.reports, self.worker)
        lost = self._reconcile(tx, ask, settled.again) if self._doubt else ()
        collected, items_left = self._collect(tx) if ask.collect else (0, False)
        leased: tuple[Job, ...] = ()
        ended: tuple[Change, ...] = ()
        more = False
        if ask.slots > 0:
            if not tx.is_alive(self.worker):
                return Ticked(tx.at, settled=settled, lost=tuple(ask.running), buried=True)
            leased, ended, more = self._lease(tx, ask)
        more = more or items_left
        return Ticked(tx.at, leased, settled, ended, lost, collected, more)

    def _reconcile(self, tx: Transaction, ask: Ask, again: Sequence[Report]) -> tuple[Job, ...]:
        """After a tick whose answer was lost: which runs lost their lease?

        Leases that nobody here runs, because the answer that told of them was lost, are given back.
        """
        mine = {job.id: job.lease for job in ask.running}
        mine.update({report.job.id: report.job.lease for report in again})
        strays = [
            change(job, Release(tx.at, job.lease.token, ReleaseReason.NEVER_STARTED))
            for job in tx.leased_by(self.worker, self.settings.concurrency * 2)
            if job.lease is not None and mine.get(job.id) != job.lease
        ]
        if strays:
            tx.append(strays)
        current = tx.load([job.id for job in ask.running])
        return tuple(job for job in ask.running if current[job.id].lease != job.lease)

    def _collect(self, tx: Transaction) -> tuple[int, bool]:
        keys = tx.collectable(self.settings.collect_items)
        changes = [
            each
            for key in keys
            for each in collect(key.open_group, key.arrivals, self.new_id, tx.at)
        ]
        if changes:
            missed = tx.append(changes)
            assert not missed, "an open group is locked before its items are taken"
        taken = sum(len(key.arrivals) for key in keys)
        return taken, taken >= self.settings.collect_items

    def _lease(self, tx: Transaction, ask: Ask) -> tuple[tuple[Job, ...], tuple[Change, ...], bool]:
        suspects = suspects_allowed(ask.running, tx.at, self.settings.suspect_seconds)
        turn = self._turn = (self._turn + 1) % max(1, len(self.queues))
        queues = self.queues[turn:] + self.queues[:turn]
        since = None if ask.full_sweep else self._floor
        picked = tx.claim(Claim(queues, self.names, ask.slots, suspects, since))
        admitted = admit(picked, ask.slots, suspects)
        changes = [change(job, TakeLease(tx.at, self.worker)) for job in admitted]
        missed = {id(each) for each in tx.append(changes)} if changes else set[int]()
        took = [each for each in changes if id(each) not in missed]
        full = len(picked) >= ask.slots
        # Dead index entries pile up below what was just picked; while batches come back full the
        # next pick starts there.  The margin leaves room for commits that were a little late.
        newest = max((job.due_at for job in picked), default=tx.at)
        self._floor = newest - timedelta(seconds=1) if full else None
        leased = tuple(each.after for each in took if each.after.state is State.LEASED)
        ended = tuple(each for each in took if each.after.state is not State.LEASED)
        return leased, ended, full or since is not None

    def _isolate(self, ask: Ask, refusal: DataRefused) -> Ticked:
        """Redo a refused batch in halves until the one bad report is found and failed."""
        reports = ask.reports
        if not reports:
            raise StoreUnavailable(refusal.reason) from refusal
        if len(reports) == 1:
            text = f"the database refused the end of this run: {refusal.reason}"
            failed = Report(reports[0].job, Broke(text, 0.0, retry=False))
            with self.store.transaction() as tx:
                return Ticked(tx.at, settled=settle(tx, [failed], self.worker), more=True)
        half = len(reports) // 2
        ticked = [self._settle_only(ask, part) for part in (reports[:half], reports[half:])]
        return _joined(ticked[0], ticked[1])

    def _settle_only(self, ask: Ask, reports: Sequence[Report]) -> Ticked:
        part = Ask(reports, ask.running, 0, False, False)
        try:
            with self.store.transaction() as tx:
                return Ticked(tx.at, settled=settle(tx, reports, self.worker), more=True)
        except DataRefused as refusal:
            return self._isolate(part, refusal)


def sweep(store: Store, limit: int) -> tuple[Change, ...]:
    """Expire leases that have ended, of any queue and name.  One worker at a time does it."""
    with store.transaction() as tx:
        if not tx.lead("expiry"):
            return ()
        return expire_all(tx, tx.overdue(limit), ExpiryCause.LEASE_ENDED)


def expire_all(tx: Transaction, jobs: Sequence[Job], cause: ExpiryCause) -> tuple[Change, ...]:
    """Expire the leases of locked jobs."""
    changes = [
        change(job, ExpireLease(tx.at, job.lease.token, cause))
        for job in jobs
        if job.lease is not None
    ]
    missed = {id(each) for each in tx.append(changes)} if changes else set[int]()
    return tuple(each for each in changes if id(each) not in missed)


def _joined(first: Ticked, second: Ticked) -> Ticked:
    one, two = first.settled, second.settled
    settled = Settled(one.changes + two.changes, one.refused + two.refused, one.again + two.again)
    return Ticked(second.at, settled=settled, more=True)


__all__ = ["Ask", "Refusal", "Ticked", "Ticker", "expire_all", "sweep"]
