"""What workers write: ticks, the sweep of leases that have ended, the burial of the dead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from attrs import evolve, field, frozen

from leasebook.domain import Change, Group, Job, OnHold, Recorded, ReleaseReason, change
from leasebook.domain.commands import TakeLease
from leasebook.domain.events import Completed, Failed
from leasebook.domain.job import Policy
from leasebook.infra.ports import Store, StoreUnavailable
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Answer, Broke, GaveBack, RanOver, Report, Succeeded
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.tick import Ask, Ticked
from tests.conformance import making

from .scene import SETTINGS, Scene, ticker

T = TypeVar("T")
TRIES_MAX = 10
ONCE = Policy(retries=0)
TWICE = Policy(retries=1)
GROUP = Group(window=1, max_hold=60, max_size=2)

#: One run of each kind of end, with the policy of its job.
ENDS: tuple[tuple[Answer, Policy], ...] = (
    (Succeeded('{"pages":3}'), TWICE),
    (Broke("boom", 0.0), TWICE),
    (GaveBack(ReleaseReason.SNOOZE), TWICE),
    (RanOver(), TWICE),
    (Broke("boom", 0.0), ONCE),
    (Broke("of no use", 0.0, retry=False), TWICE),
    (Succeeded(), TWICE),
)


@frozen
class Given:
    """What stands before the operation.  ``holder`` has the leases of ``held``."""

    actor: str
    holder: str
    held: tuple[Job, ...] = ()
    others: tuple[Job, ...] = ()
    items: tuple[int, ...] = ()


@frozen
class Told:
    """What was acknowledged: versions of streams that must be there, with the kind of the event."""

    events: tuple[tuple[UUID, int, str], ...] = field(factory=tuple)

    @classmethod
    def of(cls, changes: Sequence[Change]) -> Told:
        """The events of committed changes."""
        return cls(
            tuple((each.after.id, each.after.version, each.events[-1].kind) for each in changes)
        )


@frozen
class Working:
    """One operation of a worker, called again until its answer is heard, as the worker's loop does.

    ``number`` keeps the jobs of one point apart from those of another.
    """

    name: str
    given: Callable[[Scene, Given, int], Given]
    do: Callable[[Store, Given], Callable[[], Told]]

    def prepare(self, scene: Scene, number: int) -> Given:
        """Jobs and leases for this point."""
        actor, holder = f"actor {number}", f"holder {number}"
        for each in (actor, holder):
            scene.store.enroll(making.worker(each))
        return self.given(scene, Given(actor, holder), number * 20)

    def act(self, dsn: str, given: Given) -> Told:
        """Do it until told that it is done."""
        store = PostgresStore(dsn)
        once = self.do(store, given)
        for _ in range(TRIES_MAX):
            try:
                return once()
            except StoreUnavailable:
                continue
        raise AssertionError(f"no answer in {TRIES_MAX} tries")

    def verify(self, scene: Scene, given: Given, told: Told | None) -> None:
        """Another worker finishes it all: what was told stands, and every job has ended once."""
        acknowledged = () if told is None else told.events
        finished = {job_id for job_id, _, kind in acknowledged if kind in ("completed", "failed")}
        runs = {job.id for job in scene.finish(dead=[given.actor, given.holder])}
        streams = scene.streams()
        for job_id, version, kind in acknowledged:
            stands = [each.event.kind for each in streams.get(job_id, ())][version - 1 : version]
            assert stands == [kind], f"{kind} of {job_id} was told, {stands} stands there"
        assert not finished & runs, "what was told to be finished ran again"
        for job in (*given.held, *given.others):
            times = _ends(streams[job.id])
            assert times == 1, f"{job.id} ended {times} times"
        members = sorted(
            int(item)
            for stream in streams.values()
            for each in stream
            for item in getattr(each.event, "items", ())
            if int(item) in given.items
        )
        assert members == sorted(given.items), f"of the items {given.items}, {members} are in jobs"


def _ends(stream: Sequence[Recorded]) -> int:
    return sum(isinstance(each.event, Completed | Failed) for each in stream)


def _due(scene: Scene, number: int, *policies: Policy) -> tuple[Job, ...]:
    specs = [making.new_spec(number + n, policy=each) for n, each in enumerate(policies)]
    return tuple(making.enqueue(scene.store, *specs))


def _leased(scene: Scene, jobs: Sequence[Job], holder: str) -> tuple[Job, ...]:
    """Leases that were taken just now."""
    with scene.store.transaction() as tx:
        changes = [change(job, TakeLease(tx.at, holder)) for job in jobs]
        assert not tx.append(changes)
    return tuple(each.after for each in changes)


def _runs(scene: Scene, given: Given, number: int, most: int = len(ENDS)) -> Given:
    jobs = _due(scene, number, *(policy for _, policy in ENDS[:most]))
    return evolve(given, held=_leased(scene, jobs, given.actor))


def _waiting(scene: Scene, given: Given, number: int) -> Given:
    return evolve(given, others=_due(scene, number, TWICE, ONCE, TWICE))


def _strays(scene: Scene, given: Given, number: int) -> Given:
    """Two leases that a lost answer told of, beside a run that goes on."""
    jobs = _due(scene, number, TWICE, TWICE, TWICE)
    return evolve(given, held=_leased(scene, jobs, given.actor))


def _overdue(scene: Scene, given: Given, number: int) -> Given:
    """Leases that ended long ago; one of them was the last that its job may have."""
    jobs = _due(scene, number, TWICE, ONCE, TWICE)
    return evolve(given, held=tuple(making.lease(scene.store, job, given.holder) for job in jobs))


def _orphans(scene: Scene, given: Given, number: int) -> Given:
    jobs = _due(scene, number, TWICE, ONCE, TWICE)
    return evolve(given, held=_leased(scene, jobs, given.holder))


def _aging(scene: Scene, given: Given, number: int) -> Given:
    """Leases of which little is left, of runs that may go on."""
    at = making.now(scene.store) - timedelta(seconds=500)
    policy = Policy(retries=1, timeout=3_600.0)
    births = [making.birth(making.new_spec(number + n, policy=policy), at) for n in range(2)]
    jobs = making.write(scene.store, *births)
    return evolve(given, held=tuple(making.lease(scene.store, job, given.actor) for job in jobs))


def _inbox(scene: Scene, given: Given, number: int) -> Given:
    """Items that fill an open group, that begin the next, and of another key; all are due."""
    at = making.now(scene.store) - making.HOUR
    first, *rest = (number + n for n in range(4))
    scene.ground.put_items(making.items([first], f"a {number}", group=GROUP), at)
    ticker(scene.store, given.holder).tick(Ask((), (), 0, collect=True))
    for item, key in zip(rest, "aab", strict=True):
        scene.ground.put_items(making.items([item], f"{key} {number}", group=GROUP), at)
    return evolve(given, items=(first, *rest))


def _in_line(scene: Scene, given: Given, number: int) -> Given:
    """Three jobs of a key, none born behind another."""
    specs = [
        making.new_spec(number + n, ordering_key=f"key {number}", on_hold=OnHold.SKIP)
        for n in range(3)
    ]
    return evolve(given, others=tuple(making.enqueue(scene.store, *specs)))


def _blocked(scene: Scene, given: Given, number: int) -> Given:
    """The first of a key runs, and the others wait for it."""
    given = _in_line(scene, given, number)
    held = ticker(scene.store, given.actor).tick(_lease(given)).leased
    assert len(held) == 1
    return evolve(given, held=held, others=given.others[1:])


def _everything(scene: Scene, given: Given, number: int) -> Given:
    given = _inbox(scene, _runs(scene, given, number, 3), number)
    return evolve(given, others=_due(scene, number + 3, TWICE))


def _ticking(ask: Callable[[Given], Ask]) -> Callable[[Store, Given], Callable[[], Told]]:
    def do(store: Store, given: Given) -> Callable[[], Told]:
        one, asked = ticker(store, given.actor), ask(given)
        return lambda: _told(one.tick(asked))

    return do


def _told(ticked: Ticked) -> Told:
    leases = tuple((job.id, job.version, "leased") for job in ticked.leased)
    return Told(leases + Told.of((*ticked.settled.changes, *ticked.ended)).events)


def _reports(given: Given) -> list[Report]:
    return [Report(job, answer) for job, (answer, _) in zip(given.held, ENDS, strict=False)]


def _settle(given: Given) -> Ask:
    return Ask(_reports(given), (), 0)


def _complete(given: Given) -> Ask:
    return Ask([Report(job, Succeeded()) for job in given.held], (), 0)


def _fail(given: Given) -> Ask:
    return Ask([Report(job, Broke("boom", 0.0, retry=False)) for job in given.held], (), 0)


def _lease(given: Given) -> Ask:
    return Ask((), (), 10, full_sweep=True)


def _reconcile(given: Given) -> Ask:
    return Ask((), given.held[:1], 0, reconcile=True)


def _collect(given: Given) -> Ask:
    return Ask((), (), 0, collect=True)


def _whole(given: Given) -> Ask:
    return Ask(_reports(given), (), 10, collect=True, full_sweep=True, reconcile=True)


def _careless(store: Store, given: Given) -> Callable[[], Told]:
    honest = _ticking(_complete)(store, given)

    def once() -> Told:
        try:
            return honest()
        except StoreUnavailable:
            return Told(tuple((job.id, job.version + 1, "completed") for job in given.held))

    return once


def _sweep(store: Store, given: Given) -> Callable[[], Told]:
    return lambda: Told.of(sweep(store, 100))


def _bury(store: Store, given: Given) -> Callable[[], Told]:
    heart = Heart(store, given.actor, SETTINGS)
    return lambda: Told.of(heart.bury(given.holder))


def _settle_key(store: Store, given: Given) -> Callable[[], Told]:
    key = given.others[0].spec.ordering_key
    assert key is not None

    def once() -> Told:
        assert store.settle_key(key, 5.0)
        return Told()

    return once


def _pulse(store: Store, given: Given) -> Callable[[], Told]:
    heart = Heart(store, given.actor, SETTINGS)
    return lambda: Told.of(heart.pulse(0.0)[1])


WORKING = (
    Working("tick: completed runs", _strays, _ticking(_complete)),
    Working("tick: every way to end a run", _runs, _ticking(_settle)),
    Working("tick: leases", _waiting, _ticking(_lease)),
    Working("tick: stray leases are given back", _strays, _ticking(_reconcile)),
    Working("tick: items are collected", _inbox, _ticking(_collect)),
    Working("tick: a job is leased, others of its key are blocked", _in_line, _ticking(_lease)),
    Working("tick: a job ends, and others go on", _blocked, _ticking(_complete)),
    Working("tick: a job is held, and others go on", _blocked, _ticking(_fail)),
    Working("tick: a job ends, and the next is leased", _blocked, _ticking(_whole)),
    Working("a key without producers is settled", _in_line, _settle_key),
    Working("tick: all of it", _everything, _ticking(_whole)),
    Working("sweep of leases that have ended", _overdue, _sweep),
    Working("burial of a dead worker", _orphans, _bury),
    Working("heartbeat that renews", _aging, _pulse),
)

#: What must not pass: a worker that takes a lost answer for a yes.
CARELESS = Working("tick: a lost answer is a yes", _strays, _careless)
