"""Worker processes: the real tick loop, executor and heart, put together as ``Worker.run`` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from leasebook.infra.enrolment import Enrolment
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.executor import Executor
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.heart_thread import beat_until
from leasebook.infra.worker.loop import TickLoop
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.settling import Settling
from leasebook.infra.worker.tick import Ticked, Ticker

from .doubles import VirtualEvent, VirtualLoop, VirtualThreads
from .handlers import ScriptedType
from .outside import VirtualWriter
from .scheduler import Process
from .store import INBOX_REFUSED

if TYPE_CHECKING:
    from .world import World

SETTINGS = WorkerSettings(
    concurrency=3,
    poll=1.0,
    heartbeat=0.8,
    dead_after=2.4,
    drain=2.0,
    cancel=1.0,
    settle=1.0,
    begin=0.5,
    suspect_seconds=2.0,
    collect_items=5,
    sweep_jobs=3,
    floor_seconds=2.0,
)
ASYNC_NAMES = ("async", "async_group")
NAMES = ("async", "async_group", "blocking", "blocking_group")
QUEUES = ("default", "other")
RESTART_SECONDS_MAX = 2.0
BURY_SECONDS = 30.0
HEART = "heart of "


class HeartChild:
    """The heartbeat process of one worker id; what ``heart_process.serve`` does."""

    def __init__(self, world: World, worker: str) -> None:
        self.process = Process(HEART + worker)
        self.process.on_death = lambda: world.unobserved.add(worker)
        self.worker = worker
        self._world = world
        self._stop = VirtualEvent(world.scheduler)
        world.processes.append(self.process)
        world.scheduler.spawn(self.process, self.process.name, self._beat)

    def goodbye(self) -> None:
        """Stop beating; the worker has left or has a new id."""
        self._world.unobserved.add(self.worker)
        self._stop.set()

    def pipe_closed(self) -> None:
        """The worker is gone: bury it."""
        self.goodbye()
        if self.process.died_at is None:
            self._world.scheduler.spawn(self.process, f"undertaker of {self.worker}", self._bury)

    def _heart(self) -> Heart:
        return Heart(self._world.store(), self.worker, self._world.settings)

    def _beat(self) -> None:
        beat_until(self._stop, self._heart())  # type: ignore[arg-type]

    def _bury(self) -> None:
        scheduler = self._world.scheduler
        heart, give_up = self._heart(), scheduler.now + BURY_SECONDS
        while scheduler.now < give_up:
            try:
                heart.bury(self.worker)
            except StoreUnavailable:
                pass
            else:
                if not heart.is_burying:
                    return
            scheduler.sleep(1.0)


class ObservedLoop(TickLoop):
    """The real loop, which also tells the world what it believes to be acknowledged."""

    world: World

    def _take_over(self, ticked: Ticked, now: float) -> None:
        self.world.acknowledged += ticked.settled.changes
        self.world.profile.fired["(late result refused)"] += len(ticked.settled.refused)
        self.world.profile.fired["(lease lost)"] += len(ticked.lost)
        self.world.profile.fired["(declared dead)"] += ticked.buried
        self.world.profile.fired["(inbox left alone)"] += ticked.inbox_refused is not None
        super()._take_over(ticked, now)

    def _unavailable(self, error: Exception) -> None:
        # What is wrong with the inbox must not keep the rest of a tick from being done.
        if not isinstance(error, StoreUnavailable) or INBOX_REFUSED in str(error):
            self.world.scheduler.crashes.append(("tick", error))
        super()._unavailable(error)


class WorkerProcess:
    """One life of a worker process; the world starts another when it has ended."""

    def __init__(self, world: World, name: str) -> None:
        scheduler = world.scheduler
        self.process = process = Process(name)
        self.world = world
        self.heart: HeartChild | None = None
        self.bell = Bell()
        self.bell._event = VirtualEvent(scheduler)  # type: ignore[assignment]
        self.loop = VirtualLoop(scheduler, process)
        handlers = {
            name: ScriptedType(world.script, process, self.loop, is_async=name in ASYNC_NAMES)
            for name in NAMES
        }
        self.executor = Executor(self.loop.face, self.bell, handlers, world.settings.begin)
        self.executor._threads = VirtualThreads(self._start_thread)  # pyright: ignore[reportPrivateUsage]
        self.executor._writer = VirtualWriter(self.bell, scheduler)  # pyright: ignore[reportPrivateUsage]
        self.ticks: ObservedLoop | None = None
        self._done = VirtualEvent(scheduler)
        world.processes.append(process)
        world.loops.append(self.loop)
        self.loop.start()
        scheduler.spawn(process, f"{name}.tick", self._run)
        scheduler.spawn(process, f"{name}.main", self._mend)

    def stop(self) -> None:
        """Ask for a graceful stop, as SIGTERM does."""
        if self.ticks is not None and self.process.died_at is None and not self.ticks.stopping:
            self.world.scheduler.spawn(self.process, f"{self.process.name}.stop", self._wind_down)

    def gone(self) -> None:
        """The process has ended, whoever ended it."""
        self.loop.close()
        if self.heart is not None:
            self.heart.pipe_closed()

    def _run(self) -> None:
        world, store = self.world, self.world.store()
        try:
            worker = self._enroll()
        except StoreUnavailable:
            self._exit()
        paced = (worker, QUEUES, NAMES, world.settings, world.new_id)
        ticker, settler = Ticker(store, *paced), Ticker(world.store(), *paced)
        settling = Settling(settler, self.bell)
        settling._wanted = VirtualEvent(world.scheduler)  # type: ignore[assignment]
        world.scheduler.spawn(self.process, f"{self.process.name}.settle", settling.run)
        self.ticks = ObservedLoop(
            store,
            ticker,
            settling,
            self.executor,
            self.bell,
            world.settings,
            on_buried=self._enroll,
            on_idle=lambda: None,
        )
        self.ticks.world = world
        self.ticks.run()
        heart, self.heart = self.heart, None
        assert heart is not None
        if self.ticks.settled:
            heart.goodbye()
            try:
                store.leave(ticker.worker)
            except StoreUnavailable:
                world.profile.fired["(could not sign off)"] += 1
        else:
            heart.pipe_closed()
        self._done.set()
        self._exit()

    def _exit(self) -> NoReturn:
        self.process.dying = True
        self.world.scheduler.pause()
        raise AssertionError("the process is gone")

    def _enroll(self) -> str:
        world = self.world
        worker = f"{self.process.name}#{world.new_id().int & 0xFFFF}"
        # Until its heart beats nobody can tell it from a dead one.
        world.unobserved.add(worker)
        enrolment = Enrolment(worker, self.process.name, "host", 1, 3, QUEUES, "1", NAMES)
        world.store().enroll(enrolment)
        if self.heart is not None:
            self.heart.goodbye()
        self.heart = HeartChild(world, worker)
        world.unobserved.discard(worker)
        return worker

    def _mend(self) -> None:
        """Start another heart where one has died."""
        world = self.world
        while True:
            world.scheduler.sleep(world.settings.heartbeat)
            if self.heart is not None and self.heart.process.died_at is not None:
                self.heart = HeartChild(world, self.heart.worker)

    def _wind_down(self) -> None:
        world, ticks = self.world, self.ticks
        assert ticks is not None
        settings, clock = world.settings, self.loop.time
        ticks.give_up_at = clock() + settings.drain + settings.cancel + settings.settle
        ticks.stop()
        if self._settled(settings.drain):
            return
        self.executor.interrupt()
        if self._settled(settings.cancel):
            return
        self.executor.abandon()
        ticks.give_up_at = clock() + settings.settle
        self.bell.wake()

    def _settled(self, seconds: float) -> bool:
        until = self.world.scheduler.now + seconds
        while not self._done.is_set() and self.world.scheduler.now < until:
            self._done.wait(until - self.world.scheduler.now)
        return self._done.is_set()

    def _start_thread(self, work: Callable[[], None]) -> None:
        world = self.world
        if "no thread left" in world.profile.rates and world.profile.strikes("no thread left"):
            raise RuntimeError("can't start new thread")
        world.scheduler.spawn(self.process, f"{self.process.name}.thread", work)
