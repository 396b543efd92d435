"""The worker's only transaction: append what finished, collect, pick, decide, lease, commit.

Only the first step may wait for a job's row, and a claim for who buries this worker.  Nothing here
reads a clock or a queue of its own: the caller brings what finished and how many slots are free,
and the simulator calls the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from attrs import define, evolve, field, frozen

from ...domain.admission import admit, is_suspect, suspects_allowed
from ...domain.commands import Release, TakeLease
from ...domain.decide import change
from ...domain.decide.collection import collect
from ...domain.job import Job
from ...domain.log import Change
from ...domain.passing import Passing
from ...domain.states import ENDED, State
from ...domain.values import ReleaseReason
from ..ports import Claim, DataRefused, Store, StoreUnavailable, Transaction
from .answers import Entry
from .isolate import isolated
from .logs import log_key_in_use, log_locked
from .order import Freed, go_on, line_up, taken
from .settings import WorkerSettings
from .settle import Settled, settle

FLOOR_MARGIN = timedelta(seconds=1)
#: A batch of jobs that have to wait is read on from, so many at once, so many times in one tick.
READ_ON_JOBS = 500
ROUNDS_MAX = 3


@frozen
class Ask:
    """What a tick is asked to do.

    ``entries`` are the runs that ended and the writes of those that go on, ``running`` the jobs
    that run on, ``slots`` how many more may start; ``unsettled`` jobs have ended here, and another
    tick records it.  ``collect``, ``full_sweep`` (of the due-time floor) and ``reconcile`` (what
    this worker runs with what it holds) are the caller's pacing.
    """

    entries: Sequence[Entry]
    running: Collection[Job]
    slots: int
    collect: bool = False
    full_sweep: bool = False
    reconcile: bool = False
    unsettled: Sequence[Job] = ()


@frozen
class Ticked:
    """What a committed tick did.  ``more`` tells that the queue may hold more that is due.

    ``lost`` are running jobs whose lease is another's by now.  ``inbox_refused`` is the reason when
    the store refused what collecting made of the inbox; the rest of the tick was done without it.
    ``freed`` jobs had waited for one that has ended, and others wait for the ``owed`` still.
    """

    leased: tuple[Job, ...] = ()
    settled: Settled = field(factory=Settled)
    ended: tuple[Change, ...] = ()
    lost: tuple[Job, ...] = ()
    collected: int = 0
    more: bool = False
    buried: bool = False
    inbox_refused: str | None = None
    freed: int = 0
    owed: tuple[Job, ...] = ()


@define
class Ticker:
    """One worker's ticks on one store.

    ``crowded`` tells that due jobs stand about which this worker must leave alone; ``keys`` are the
    ordering keys that it passes over for a moment, ``parents`` the jobs whose followers it does.
    """

    store: Store
    worker: str
    queues: tuple[str, ...]
    names: tuple[str, ...]
    settings: WorkerSettings
    new_id: Callable[[], UUID]
    crowded: bool = False
    keys: Passing[str] = field(factory=Passing[str])
    parents: Passing[UUID] = field(factory=Passing[UUID])
    _doubt: bool = False
    _floor: datetime | None = None
    _base: datetime | None = None
    _turn: int = 0
    _at: datetime | None = None
    _wary: frozenset[UUID] = frozenset()
    _locked: frozenset[UUID] = frozenset()
    _owed: tuple[Job, ...] = ()

    def owe(self, ended: Sequence[Job]) -> None:
        """Let those go on by the next tick who wait for what another tick has ended."""
        self._owed += tuple(ended)

    @property
    def owes(self) -> bool:
        """Whether jobs may still wait for one that has ended here."""
        return bool(self._owed)

    @property
    def in_doubt(self) -> bool:
        """Whether the answer of the last tick was lost, so that nobody knows what it leased."""
        return self._doubt

    def tick(self, ask: Ask) -> Ticked:
        """Run one tick.  Raises StoreUnavailable: then nothing is known, and the reports stay."""
        if ask.slots > 0 and not ask.entries:
            self._settle_a_key()
        try:
            with self.store.transaction() as tx:
                ticked = self._steps(tx, ask)
        except DataRefused as refusal:
            return self._without(ask, refusal)
        except BaseException:
            # The commit may have gone through with leases that nobody here knows of.
            self._doubt = self._doubt or ask.slots > 0
            # Perhaps somebody holds a row of theirs.
            self._wary = frozenset(each.job.id for each in ask.entries)
            # Nor is it known what has been seen of the queue.
            self._floor = self._base = None
            raise
        self._doubt = False
        locked = ticked.settled.locked
        log_locked([each.job for each in locked if each.job.id not in self._locked])
        self._wary = self._locked = frozenset(each.job.id for each in locked)
        self._owed = ticked.owed
        if ticked.buried:
            # Nothing was given to it, and so nothing was seen.
            self._floor = self._base = None
        return ticked

    def _settle_a_key(self) -> None:
        """Wait for the producers of a key that has been busy for long, holding nothing else."""
        if self._at is None or (wanted := self.keys.impatient(self._at)) is None:
            return
        key, patience = wanted
        newest = self.store.settle_key(key, patience)
        if self.keys.waited(key, newest, self._at):
            log_key_in_use(key)

    def _steps(self, tx: Transaction, ask: Ask) -> Ticked:
        settled = settle(tx, ask.entries, self._wary)
        reconcile = ask.reconcile or self._doubt
        later = (*settled.again, *settled.locked)
        lost = self._reconcile(tx, ask, later) if reconcile else ()
        freed = go_on(tx, self._owed)
        buried = reconcile and not tx.is_alive(self.worker)
        collected, items_left = self._collect(tx) if ask.collect else (0, False)
        leased: tuple[Job, ...] = ()
        ended: tuple[Change, ...] = ()
        more = False
        if ask.slots > 0 and not buried:
            leased, ended, more = self._lease(tx, ask)
            further = go_on(tx) if ended else Freed()
            freed = Freed(freed.changes + further.changes, freed.owed + further.owed)
            # Who is given something lives; nobody is buried between two questions.
            buried = not (leased or ended or reconcile or tx.is_alive(self.worker))
        self._at = tx.at
        return Ticked(
            leased, settled, ended, tuple(ask.running) if buried else lost, collected,
            more or items_left, buried, freed=len(freed.changes), owed=freed.owed,
        )  # fmt: skip

    def _reconcile(self, tx: Transaction, ask: Ask, again: Sequence[Entry]) -> tuple[Job, ...]:
        """Which of the running jobs have lost their lease?

        Leases that nobody here runs, because the answer that told of them was lost, are given back.
        """
        # A job may be both: a late report of its last run waits while its new run goes on.
        ended = (*ask.unsettled, *(each.job for each in again))
        mine = {(job.id, job.lease) for job in (*ask.running, *ended)}
        strays = [
            change(job, Release(tx.at, job.lease.token, ReleaseReason.NEVER_STARTED))
            for job in tx.leased_by(self.worker, self.settings.concurrency * 2)
            if job.lease is not None and (job.id, job.lease) not in mine
        ]
        if strays:
            tx.append(strays)
        current = tx.load([job.id for job in ask.running]) if ask.running else {}
        return tuple(
            job
            for job in ask.running
            if (now := current.get(job.id)) is None or now.lease != job.lease
        )

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
        """Fill the free slots.  A batch that had to wait, in whole or in part, is read on from."""
        suspects = suspects_allowed(ask.running, tx.at, self.settings.suspect_seconds)
        turn = self._turn = (self._turn + 1) % max(1, len(self.queues))
        queues = self.queues[turn:] + self.queues[:turn]
        since = None if ask.full_sweep else self._floor
        seen: list[Job] = []
        took: list[Change] = []
        passed, full, limit, slots, began = False, False, ask.slots, ask.slots, tx.at
        for _ in range(ROUNDS_MAX):
            without, after = self.keys.keys(tx.at), self.parents.keys(tx.at)
            wanted = Claim(queues, self.names, limit, suspects, since, without, after, self.worker)
            picked = tx.claim(wanted)
            lined = line_up(tx, picked, self.worker, self.keys, self.parents)
            admitted = admit(lined.ready, slots, suspects)
            took += self._append(tx, admitted, lined.waits)
            seen += picked
            slots -= len(admitted)
            suspects -= sum(map(is_suspect, admitted))
            passed = passed or bool(lined.passed)
            full = len(picked) >= limit
            if slots <= 0 or not full or not (lined.waits or lined.passed):
                break
            limit = max(limit, READ_ON_JOBS)
        # What was committed since may have been missed, however long the claim waited for a lock.
        more = self._move_floor(began, since, seen, full=full and not passed)
        leased = tuple(each.after for each in took if each.after.state is State.LEASED)
        ended = tuple(each for each in took if each.after.state in ENDED)
        return leased, ended, more or (full and len(leased) < len(seen) and not passed)

    def _append(
        self, tx: Transaction, admitted: Sequence[Job], waits: Sequence[Change]
    ) -> list[Change]:
        """Lease the admitted, apart because that goes fast, and write down who waits."""
        take = TakeLease(tx.at, self.worker)
        changes = [each for job in admitted if (each := taken(job, take)) is not None]
        missed = {id(each) for each in tx.append(changes)} if changes else set[int]()
        if waits:
            missed |= {id(each) for each in tx.append(waits)}
        return [each for each in (*changes, *waits) if id(each) not in missed]

    @property
    def since(self) -> datetime | None:
        """Where a look may begin: all that is due earlier was seen, and is not for this worker."""
        return self._base if self.crowded else None

    def _move_floor(
        self, at: datetime, since: datetime | None, picked: Sequence[Job], *, full: bool
    ) -> bool:
        """Remember where the next pick starts; whether the queue may hold more that is due.

        Dead index entries pile up below what was just picked; while batches come back full the
        next pick starts there.  When strangers stand before what is ours, picks start behind all
        that one of them has seen, too, whether it came back full or not: nobody walks past the
        same strangers time and again.  The margin leaves room for commits that were a little late;
        those that were later wait for a full sweep.
        """
        newest = max((job.due_at for job in picked), default=at)
        if not self.crowded:
            self._base = None
            self._floor = newest - FLOOR_MARGIN if full else None
            return full or since is not None
        if full:
            self._base = None if since is None else self._base
            self._floor = newest
            return True
        seen_all = since is None or since == self._base
        if seen_all:
            self._base = at - FLOOR_MARGIN
        self._floor = self._base
        return not seen_all

    def _without(self, ask: Ask, refusal: DataRefused) -> Ticked:
        """Redo a refused tick in parts, so that what is refused holds nothing else up.

        The entries come first, alone; what they do not explain lies in the inbox, which is left.
        """
        if ask.entries:
            return Ticked(settled=isolated(self.store, ask.entries), more=True)
        if not ask.collect:
            raise StoreUnavailable(refusal.reason) from refusal
        ticked = self.tick(evolve(ask, collect=False))
        return evolve(ticked, inbox_refused=refusal.reason)
