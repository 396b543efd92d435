"""One small world: built from a seed, shaken, calmed, and judged.

First everything may go wrong (safety); then faults stop and every job must come to an end within a
bound of virtual time (liveness).  What happened is judged by the one checker of invariants, and by
what only somebody outside the database can know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import count
from random import Random
from uuid import UUID

from attrs import evolve, frozen

from leasebook.domain import Change
from leasebook.infra.memory import MemoryDatabase

from .doubles import VirtualLoop, virtual_time
from .handlers import Script
from .judge import judge, judge_midway
from .line import is_over
from .producers import Batch, Producer, a_group
from .profile import Profile
from .scheduler import Actor, Process, Scheduler, Stuck
from .store import Server, SimStore
from .workers import HEART, RESTART_SECONDS_MAX, SETTINGS, WorkerProcess

START = datetime.fromisoformat("2030-01-01T00:00:00+00:00")
SAFETY_SECONDS = (3.0, 7.5)
#: From the end of faults to the end of every job.  The longest honest way: a back-off of 8 s after
#: an outage, the delay of a job, then every attempt with its delay and a full time-out of each.
LIVENESS_SECONDS = 90.0
ID_BASE = 0x01900000_0000_7000_8000_000000000000


@frozen
class Result:
    """What became of a seed: what was wrong with it, how it went, how often each fault fired."""

    seed: int
    findings: tuple[str, ...]
    digest: str
    turns: int
    seconds: float
    fired: dict[str, int]
    trace: tuple[str, ...]


#: After so many the pause before the next try may be longer than a lease.
ANSWERS_MAX = 3


class World:
    """Everything that one seed makes."""

    def __init__(self, seed: int, focus: Collection[str] = ()) -> None:
        self.chance = chance = Random(seed)
        self.profile = Profile(chance, focus)
        self.scheduler = Scheduler(chance)
        self.skew = 0.0
        self.numbers = count(1)
        self._ids = count(1)
        self.database = MemoryDatabase(self.clock)
        self.server = Server(self.database, self.scheduler, self.profile)
        self.server.on_cut = self._cut
        self.settings = evolve(
            SETTINGS,
            concurrency=chance.choice((1, 2, 3)),
            collect_items=chance.choice((2, 5, 1_000)),
        )
        self.group = a_group(chance.choice((0.5, 1.0)), chance.choice((2, 3)))
        self.script = Script(self.scheduler, self.profile)
        self.processes: list[Process] = []
        self.loops: list[VirtualLoop] = []
        self.batches: list[Batch] = []
        self.acknowledged: list[Change] = []
        self.unobserved: set[str] = set()
        """Workers whose heart was ever in trouble by itself: others may think them dead."""
        self.answers_lost: Counter[str] = Counter()
        self.shaken: set[str] = set()
        """Names of worker processes that were killed, frozen, stopped or cut off."""
        self.upset = False
        """Whether the server was ever away, or its clock jumped: then leases end unused."""
        self.early: list[str] = []
        """What the checker found in the middle, when most jobs still have a row."""
        self.faulty = True
        self.workers: dict[str, WorkerProcess] = {}
        for number in range(chance.choice((1, 2, 2, 3))):
            self._start(f"w{number}")
        self.producers = [Producer(self, number) for number in range(chance.choice((1, 2, 2)))]
        self.scheduler.after(0.0, self._shake)

    def clock(self) -> datetime:
        """The database's clock."""
        return START + timedelta(seconds=self.scheduler.now + self.skew)

    def second(self, at: datetime) -> float:
        """The scheduler's second of a time by the database's clock, if that never jumped."""
        return (at - START).total_seconds()

    def new_id(self) -> UUID:
        """The next id, in the shape of a UUIDv7."""
        return UUID(int=ID_BASE + next(self._ids))

    def store(self) -> SimStore:
        """A connection."""
        return SimStore.at(self.server)

    def ring(self) -> None:
        """Wake the workers, as a notifier does: mostly."""
        for worker in self.workers.values():
            if self.profile.strikes("wake-up lost"):
                continue
            for _ in range(2 if self.profile.strikes("wake-up doubled") else 1):
                self.scheduler.after(self.chance.random() * 0.05, worker.bell.ring)

    def run(self) -> None:
        """Safety, then liveness.  Raises Stuck."""
        scheduler, until = self.scheduler, self.chance.uniform(*SAFETY_SECONDS)
        scheduler.after(until, lambda: None)
        scheduler.run(lambda: scheduler.now >= until, 1e9)
        self.early = judge_midway(self)
        self._calm()
        scheduler.run(self._ended, scheduler.now + LIVENESS_SECONDS)

    def close(self) -> None:
        """Let every actor unwind."""
        for process in self.processes:
            process.on_death = None
            self.scheduler.kill(process)
        for loop in self.loops:
            loop.close()

    def _ended(self) -> bool:
        tables = self.database.hub.tables
        if tables.inbox or not all(producer.finished for producer in self.producers):
            return False
        return all(is_over(tables.jobs, row) for row in tables.jobs.values())

    def _start(self, name: str) -> None:
        worker = self.workers[name] = WorkerProcess(self, name)

        def ended() -> None:
            self.shaken.add(name)
            worker.gone()
            self.scheduler.after(
                self.chance.random() * RESTART_SECONDS_MAX, lambda: self._start(name)
            )

        worker.process.on_death = ended

    def _cut(self, actor: Actor, why: str) -> None:
        """A connection was cut: what is excused by that."""
        name = actor.process.name
        if name.startswith(HEART):
            self.unobserved.add(name.removeprefix(HEART))
        self.answers_lost[name] += 1
        if why not in ("answer lost", "commit in flight") or self.answers_lost[name] > ANSWERS_MAX:
            self.shaken.add(name)

    def _calm(self) -> None:
        self.faulty = False
        self.profile.calm()
        self.server.down = False
        for process in self.processes:
            if process.frozen:
                self.scheduler.thaw(process)
        self.scheduler.tell("faults stop")

    def _shake(self) -> None:
        """Let one of the world's faults strike now and then."""
        if not self.faulty or not self.profile.world_faults:
            return
        fault = self.chance.choice(self.profile.world_faults)
        if self.profile.strikes(fault):
            self.scheduler.tell(fault)
            self._fault(fault, self.chance.choice(list(self.workers.values())))
        self.scheduler.after(self.chance.uniform(0.1, 2.0), self._shake)

    def _fault(self, fault: str, worker: WorkerProcess) -> None:
        heart = worker.heart
        match fault:
            case "worker killed":
                self.scheduler.kill(worker.process)
            case "worker and heart killed":
                self._heart(worker, self.scheduler.kill)
                self.scheduler.kill(worker.process)
            case "heart killed":
                self._heart(worker, self.scheduler.kill)
            case "worker frozen":
                self._freeze(worker.process)
            case "heart frozen":
                self._heart(worker, self._freeze)
            case "all frozen":
                self._freeze(worker.process)
                self._heart(worker, self._freeze)
            case "worker clock jumped":
                processes = [worker.process] if heart is None else [worker.process, heart.process]
                self._jump(self.chance.choice(processes))
            case "database clock jumped":
                self.upset = True
                self.skew += self.chance.uniform(-2.0, 5.0)
            case "outage":
                self.upset = True
                self.server.stop()
                self.scheduler.after(self.chance.uniform(0.2, 8.0), self._up)
            case _:
                worker.stop()
        self.shaken.add(worker.process.name)

    def _up(self) -> None:
        self.server.down = False

    def _heart(self, worker: WorkerProcess, act: Callable[[Process], None]) -> None:
        if worker.heart is not None:
            self.unobserved.add(worker.heart.worker)
            act(worker.heart.process)

    def _freeze(self, process: Process) -> None:
        if process.frozen or process.died_at is not None:
            return
        process.frozen = True
        self.server.idle(process)
        self.scheduler.after(self.chance.uniform(0.3, 6.0), lambda: self.scheduler.thaw(process))

    def _jump(self, process: Process) -> None:
        process.skew += self.chance.uniform(0.3, 15.0)
        for actor in process.actors:
            self.scheduler.wake(actor)


def simulate(
    seed: int,
    planted: AbstractContextManager[object] | None = None,
    focus: Collection[str] = (),
) -> Result:
    """Run one seed and judge it by the honest rules, also when a bug is ``planted`` in the run.

    ``focus`` are faults that the world has in any case.
    """
    world = World(seed, focus)
    findings: list[str] = []
    with virtual_time(world.scheduler), planted or nullcontext():
        try:
            world.run()
        except Stuck as stuck:
            findings.append(f"liveness: {stuck}")
        finally:
            world.close()
    findings += world.early or judge(world)
    trace = tuple(world.scheduler.trace)
    digest = blake2b("\n".join(trace).encode(), digest_size=8).hexdigest()
    return Result(
        seed,
        tuple(findings),
        digest,
        world.scheduler.turns,
        world.scheduler.now,
        dict(world.profile.fired),
        trace,
    )
