"""The tick thread: decides when to tick, and passes what a tick brought to those it concerns.

It owns the table of leased jobs.  Handlers never wait for it and it never waits for a handler: the
two meet at the bell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from attrs import define, field

from ...domain.admission import is_suspect
from ...domain.job import Job
from ..ports import Store
from .answers import Entry, Write
from .bell import Bell
from .executor import Executor
from .expiry import sweep
from .logs import log, log_changes, log_settled
from .outage import LONG_AGO, Outage
from .outlook import due, seconds_to_next
from .settings import WorkerSettings
from .settling import Settling
from .strangers import Strangers
from .tick import Ask, Ticked, Ticker
from .writes import as_known, reply

#: After a change an idle worker looks at what is next, but not more often than this.
LOOK_SECONDS_MIN = 0.05
#: An inbox whose items the store refuses is left alone for so long.
INBOX_PAUSE_SECONDS = 30.0
#: Other workers are woken for jobs that this one cannot start, but not more often than this.
RING_SECONDS = 0.1
#: A full look waits so many times as long as the last one took.
FULL_LOOK_SHARE = 50
LOOKING, TICKING, SETTLING = "look", "tick", "settle"


@define(eq=False)
class TickLoop:
    """Runs ticks until told to stop.  All but ``stop`` is used by one thread only."""

    store: Store
    ticker: Ticker
    settling: Settling
    executor: Executor
    bell: Bell
    settings: WorkerSettings
    on_buried: Callable[[], str]
    on_idle: Callable[[], None]
    on_freed: Callable[[], None] = lambda: None
    running: dict[UUID, Job] = field(factory=dict[UUID, Job])
    stopping: bool = False
    give_up_at: float = float("inf")
    _more: bool = True
    _inbox: bool = True
    _look_at: float = LONG_AGO
    _looked_at: float = LONG_AGO
    _collect_at: float = LONG_AGO
    _full_sweep_at: float = LONG_AGO
    _full_look_at: float = LONG_AGO
    _reconciled_at: float = LONG_AGO
    _in_vain: int = 0
    _rang_at: float = LONG_AGO
    _doing: str = LOOKING
    _outage: Outage = field(init=False)
    _strangers: Strangers = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._outage = Outage(self.settings.outage_error)
        self._strangers = Strangers(self.settings.floor_seconds)

    def stop(self) -> None:
        """Lease nothing more; the loop ends when the last run has been settled."""
        self.stopping = True
        self.bell.wake()

    def run(self) -> None:
        """Tick until stopped and settled, or until ``give_up_at``.

        Whatever goes wrong, the loop goes on: a worker that ends leaves its handlers' work undone,
        and whoever restarts it would meet the same row again.
        """
        while not (self.stopping and self.settled):
            now = time.monotonic()
            if self.stopping and not self.running:
                # No handler is left to wait for, only the store.
                self.give_up_at = min(self.give_up_at, now + self.settings.settle)
            if now > self.give_up_at:
                log.error("stop gave up on unsettled runs", runs=len(self.running or self.settling))
                break
            try:
                self._step()
            except Exception as error:
                self._unavailable(error)
        self.settling.close()

    @property
    def settled(self) -> bool:
        """Whether no run is left whose end is not recorded, as far as anybody knows."""
        return not (self.running or self.settling or self.ticker.in_doubt)

    def _step(self) -> None:
        """One round: take what came, then look, tick or wait."""
        entries, rung = self.bell.take()
        now = time.monotonic()
        for entry in (*entries, *self.executor.not_begun(now)):
            self._note(entry)
        if rung:
            self._more = self._inbox = True
            self._in_vain = 0
        self._doing = SETTLING
        if (done := self.settling.take(now)) is not None:
            self._take_over(done, now)
            self.ticker.owe(done.owed)
            self._look_at = min(self._look_at, now + self._look_again)  # Some may be due again.
            self._recovered(SETTLING)
        if (pause := self._outage.patience(now, stopping=self.stopping)) > 0:
            # Neither a ring nor the end of a run is a reason to ask a store that is away.
            self.bell.wait(min(pause, max(0.0, self.give_up_at - now)))
            return
        told, slots = self.settling, self._slots(now)
        hungry = self._more and slots > 0
        if not (hungry and told.has_few(now)):
            told.begin(now, follows=hungry)
        collect = self._inbox and not self.stopping and now >= self._collect_at
        reconcile = now - self._reconciled_at >= self.settings.heartbeat
        if now - self._looked_at >= self._look_every:
            self._look(now)
        elif hungry or collect or self.ticker.in_doubt or told.needs_tick(now):
            self._tick(slots if hungry else 0, collect, reconcile, now)
        elif reconcile:
            self._reconcile(now)
        elif not self._more and now >= self._look_at:
            self._look(now)
        else:
            self.bell.wait(self._patience(now))

    def _note(self, entry: Entry) -> None:
        """Keep it for the next batch, with the job as it is known here.

        The end of a run frees its slot.  A late one frees none, but is settled like any.
        """
        entry, is_current = as_known(entry, self.running)
        if is_current and not isinstance(entry, Write):
            del self.running[entry.job.id]
            self._more |= is_suspect(entry.job)  # Another may start now.
        if not isinstance(entry, Write) or entry.reply.set_running_or_notify_cancel():
            self.settling.note(entry)

    def _slots(self, now: float) -> int:
        """How many more may start; none while more ends than that are unrecorded."""
        most = self.settings.concurrency
        if self.stopping or len(self.settling) > most or not self.executor.responsive(now):
            return 0
        return most - len(self.running)

    def _tick(self, slots: int, collect: bool, reconcile: bool, now: float) -> None:
        self._doing = TICKING
        full_sweep = now >= self._full_sweep_at
        running, told = tuple(self.running.values()), self.settling
        entries = told.lend(now) if slots or told.needs_tick(now) else ()
        ask = Ask(entries, running, slots, collect, full_sweep, reconcile, told.jobs)
        try:
            ticked = self.ticker.tick(ask)
        except BaseException:
            told.give_back(entries)
            raise
        told.leave(ticked.settled, now)
        if full_sweep:
            self._full_sweep_at = now + self._share_of(now)
        if collect:
            self._collect_at = now + self.settings.collect_every
            self._inbox = ticked.collected > 0
        if reconcile:
            self._reconciled_at = now
        if slots:
            # Fewer than asked for: the queue held no more.  With no slot free, nobody knows.
            self._more = ticked.more
            if ticked.leased or ticked.ended:
                self._in_vain = 0
        self._take_over(ticked, now)
        if not self._more:
            self._look_at = min(self._look_at, now + self._look_again)
        self._recovered(TICKING)

    def _reconcile(self, now: float) -> None:
        """See whether this worker lives and holds what it runs, with no other reason for a tick.

        One that runs nothing has only to hear that this is so; ticks that failed need one that
        does not.
        """
        self._doing = LOOKING
        doubt = not self.settled or self.ticker.owes or self._outage.of(TICKING)
        if doubt or not self.store.is_idle(self.ticker.worker):
            self._tick(0, collect=False, reconcile=True, now=now)
        else:
            self._reconciled_at = now
            self._recovered(LOOKING)

    def _freed(self, now: float) -> None:
        """Jobs that waited for another are due now: for us, or for others when we have no slot."""
        self._more = True
        full = len(self.running) >= self.settings.concurrency
        if full and now - self._rang_at >= RING_SECONDS:
            self._rang_at = now
            self.on_freed()

    @property
    def _look_every(self) -> float:
        """Who knows of more has little to look for, and a look may have far to walk."""
        return max(self.settings.poll, self.settings.floor_seconds * self._more)

    @property
    def _look_again(self) -> float:
        """Soon after a change; later and later when what is due cannot be had, locked perhaps."""
        return min(self.settings.poll, LOOK_SECONDS_MIN * 2.0 ** min(self._in_vain, 10))

    def _take_over(self, ticked: Ticked, now: float) -> None:
        # First what was lost: the same tick may have leased the same job anew.
        for job in ticked.lost:
            self.running.pop(job.id, None)
        if ticked.leased:
            self.running.update((job.id, job) for job in ticked.leased)
            self.executor.start(ticked.leased)
        if ticked.lost:
            log.warning("leases lost", runs=len(ticked.lost))
            self.executor.forget(ticked.lost)
        for write, answer in ticked.settled.answers:
            reply(write, answer, self.running)
        log_settled(ticked.settled)
        log_changes(ticked.ended)
        if ticked.inbox_refused is not None:
            log.error("inbox refused", reason=ticked.inbox_refused, pause=INBOX_PAUSE_SECONDS)
            self._collect_at = time.monotonic() + INBOX_PAUSE_SECONDS
        if ticked.freed:
            self._freed(now)
        if ticked.buried:
            log.error("declared dead by another worker; starting anew", worker=self.ticker.worker)
            self.ticker.worker = self.on_buried()
            self._more = True

    def _look(self, now: float) -> None:
        """Ask what is next: how long to sleep, whether leases ended, whether all is done."""
        self._doing = LOOKING
        ticker = self.ticker
        full = not ticker.crowded or now >= self._full_look_at
        since = None if full else ticker.since
        sample = self._strangers.sample(now)
        outlook = self.store.outlook(ticker.queues, ticker.names, since, sample)
        self._looked_at = now
        if sample:
            self._strangers.met(outlook.strangers, now)
            ticker.crowded = bool(outlook.strangers)
        if full and ticker.crowded:
            self._full_look_at = now + self._share_of(now)
        self._inbox = self._inbox or outlook.inbox
        wait = min(self.settings.poll, seconds_to_next(outlook))
        if due(outlook.next_lease_end, outlook.at):
            swept = sweep(self.store, self.settings.sweep_jobs)
            log_changes(swept)
            self._more = True
            wait = min(wait, 0.0 if swept else self._look_again)
        self._recovered(LOOKING)
        if due(outlook.next_due, outlook.at):
            self._more = True
            self._in_vain += 1
            if full and ticker.crowded:
                self._full_sweep_at = now
        self._look_at = now + wait
        if since is None and not (self._more or outlook.inbox) and self.settled:
            self.on_idle()

    def _share_of(self, since: float) -> float:
        """How long to leave what was begun then: it takes a small part of a worker's time."""
        took = time.monotonic() - since if self.ticker.crowded else 0.0
        return max(self.settings.floor_seconds, took * FULL_LOOK_SHARE)

    def _patience(self, now: float) -> float:
        until = min(
            float("inf") if self._more else self._look_at,  # What is due is known then.
            self._looked_at + self._look_every,
            self._reconciled_at + self.settings.heartbeat,
            self.settling.due_at,
            self.give_up_at,
        )
        if self._inbox and not self.stopping:
            until = min(until, self._collect_at)
        return max(0.0, until - now)

    def _unavailable(self, error: Exception) -> None:
        """Wait before the next try, longer each time; where the thread failed a tick may not."""
        self._outage.failed(self._doing, error, time.monotonic(), alone=self._doing == SETTLING)

    def _recovered(self, doing: str) -> None:
        if self._outage.succeeded(doing, time.monotonic()):
            self._more = True
