"""Broken workers: what they forget, trust too much, or do in the wrong order."""

# A planted bug gets at what no honest code may touch.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from attrs import evolve as replace

from leasebook.domain import Change, ExpiryCause, Job, StaleLease, change, collect
from leasebook.domain.commands import Complete, ExpireLease
from leasebook.domain.events import LeaseExpired
from leasebook.domain.pacing import Observer, Sighting
from leasebook.infra.ports import DataRefused, Store, StoreUnavailable, Transaction
from leasebook.infra.worker import loop, settle, tick
from leasebook.infra.worker.answers import Entry, Report, Succeeded
from leasebook.infra.worker.isolate import failed
from leasebook.infra.worker.loop import TickLoop
from leasebook.infra.worker.settle import Settled
from leasebook.infra.worker.settling import Settling
from leasebook.infra.worker.tick import Ask, Ticked, Ticker

from .rules import Planted, always, both


def sweep_trusts_an_old_read() -> Planted:
    """Overdue leases are listed in one transaction and ended in the next, unseen."""

    def sweep(store: Store, limit: int) -> Sequence[Change]:
        with store.transaction() as tx:
            ids = [job.id for job in tx.overdue(limit)]
        with store.transaction() as tx:
            changes = [_ended(job, tx) for job in tx.load(ids).values() if job.lease is not None]
            if changes:
                tx.append(changes)
        return changes

    def _ended(job: Job, tx: Transaction) -> Change:
        assert job.lease is not None
        asked = change(job, ExpireLease(tx.at, job.lease.token, ExpiryCause.WORKER_LOST))
        [event] = asked.events
        if isinstance(event, LeaseExpired):
            event = replace(event, cause=ExpiryCause.LEASE_ENDED)
        return Change(job, (event,), asked.after)

    return patch.object(loop, "sweep", sweep)


def death_by_timestamps() -> Planted:
    """Whoever has not been seen to beat for long is dead, also after one's own long absence."""

    def dead(self: Observer, beats: dict[str, int], now: float) -> list[str]:
        for worker, count in beats.items():
            seen = self._seen.get(worker)
            if seen is None or seen.beats != count:
                self._seen[worker] = Sighting(count, now)
        gone = (each for each in beats if now - self._seen[each].since >= self.dead_after)
        return sorted(gone)

    def beaten(self: Observer, now: float) -> None:
        self._own_last = now

    return patch.multiple(Observer, dead=dead, beaten=beaten)


def collector_in_two_transactions() -> Planted:
    """Items leave the inbox in a transaction of their own, before their group is appended."""

    def _collect(self: Ticker, tx: Transaction) -> tuple[int, bool]:
        with self.store.transaction() as first:
            keys = first.collectable(self.settings.collect_items)
        changes = [
            each
            for key in keys
            for each in collect(key.open_group, key.arrivals, self.new_id, tx.at)
        ]
        if changes:
            tx.append(changes)
        return sum(len(key.arrivals) for key in keys), False

    return patch.object(Ticker, "_collect", _collect)


def blind_redo() -> Planted:
    """A result that comes too late is told again, under whatever lease there is now."""
    honest = settle._stale

    def _stale(tx: Transaction, entry: Entry, error: StaleLease, settled: Settled) -> None:
        job = tx.load([entry.job.id])[entry.job.id]
        succeeded = isinstance(entry, Report) and isinstance(entry.answer, Succeeded)
        if job.lease is None or not succeeded:
            return honest(tx, entry, error, settled)
        asked = change(job, Complete(tx.at, job.lease.token))
        if not tx.append([asked]):
            settled.changes.append(asked)

    return patch.object(settle, "_stale", _stale)


def late_is_taken_for_recorded() -> Planted:
    """A refused result is taken for one whose answer was lost."""
    return patch.object(settle, "already_recorded", always(True))


def reports_lost_in_an_outage() -> Planted:
    """What runs reported is forgotten when the tick that was to tell it fails."""
    take = Settling.take

    def forgetful(self: Settling, now: float) -> Ticked | None:
        try:
            return take(self, now)
        except StoreUnavailable:
            self._told = []
            raise

    return patch.object(Settling, "take", forgetful)


def lost_tick_is_forgotten() -> Planted:
    """Nobody asks what became of a tick whose answer was lost."""
    return patch.object(Ticker, "_reconcile", always(()))


def lost_after_leased() -> Planted:
    """Of a job that one tick lost and leased anew, the new lease is forgotten with the old.

    (This one was no invention: the simulator found it in the tick loop.)
    """
    take_over = TickLoop._take_over

    def _take_over(self: TickLoop, ticked: Ticked, now: float) -> None:
        take_over(self, ticked, now)
        for job in ticked.lost:
            self.running.pop(job.id, None)

    return patch.object(TickLoop, "_take_over", _take_over)


def refused_batch_fails_all() -> Planted:
    """When the store refuses what one run reported, every run of the batch is failed."""

    def all_failed(store: Store, entries: Sequence[Entry]) -> Settled:
        parts = [failed(store, entry, "refused") for entry in entries]
        return Settled(
            [each for part in parts for each in part.changes],
            [each for part in parts for each in part.refused],
        )

    return patch.object(tick, "isolated", all_failed)


def late_report_hides_the_new_run() -> Planted:
    """Of a job with a late report that waits, the run that goes on is taken for nobody's.

    (No invention either.  That a report waits is rare, so here it does when it misses once.)
    """
    reconcile = Ticker._reconcile

    def _reconcile(
        self: Ticker, tx: Transaction, ask: Ask, again: Sequence[Entry]
    ) -> tuple[Job, ...]:
        late = {entry.job.id for entry in again}
        running = [job for job in ask.running if job.id not in late]
        return reconcile(self, tx, replace(ask, running=running), again)

    return both(
        patch.object(Ticker, "_reconcile", _reconcile), patch.object(settle, "ROUNDS_MAX", 1)
    )


def trusts_the_bell() -> Planted:
    """An idle worker sleeps until it is rung."""
    return patch.object(TickLoop, "_patience", always(1e6))


def refused_inbox_stops_the_tick() -> Planted:
    """What the store refuses of the inbox keeps all the rest from being done, too."""
    without = Ticker._without

    def _without(self: Ticker, ask: Ask, refusal: DataRefused) -> Ticked:
        if ask.entries or not ask.collect:
            return without(self, ask, refusal)
        raise StoreUnavailable(refusal.reason)

    return patch.object(Ticker, "_without", _without)
