"""A worker from its start to its stop."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol
from uuid import UUID

from attrs import define, field

from ..app.registry import JobType
from ..enrolment import Enrolment
from ..ports import Store, StoreUnavailable, Wakeup
from .bell import Bell
from .executor import Executor
from .logs import log
from .loop import TickLoop
from .monitor import Monitor
from .processes import HandlerProcesses
from .settings import WorkerSettings
from .settling import Settling
from .tick import Ticker


class Heartbeat(Protocol):
    """Beats for a worker from somewhere that its handlers cannot hold up."""

    def start(self, worker: str) -> None:
        """Begin to beat for the worker of this id."""
        ...

    def stop(self) -> None:
        """Stop beating, without burying the worker."""
        ...

    def leave(self) -> None:
        """Stop beating for a worker that leaves runs behind, and have it buried."""
        ...

    def mend(self) -> None:
        """Start again what should beat and does not."""
        ...


@define(eq=False)
class Worker:
    """Leases jobs of a store and runs their handlers.

    ``store`` opens a store for the tick thread, ``new_id`` makes UUIDv7s.  ``run`` returns when the
    worker has stopped: by ``stop``, or in a drain when nothing is left that is due.  ``unblock``
    interrupts the loop's thread, which then calls ``break_in``: it frees a loop that a coroutine
    blocks past its time-out.  ``processes`` is where handlers with ``executor="process"`` run.
    ``started`` is set once it has reported for work.
    """

    store: Callable[[], Store]
    wakeup: Wakeup
    heartbeat: Heartbeat
    handlers: Mapping[str, JobType]
    settings: WorkerSettings
    new_id: Callable[[], UUID]
    name: str
    code_version: str = ""
    drain: bool = False
    unblock: Callable[[], None] | None = None
    processes: HandlerProcesses | None = None
    started: asyncio.Event = field(factory=asyncio.Event)
    _executor: Executor | None = None
    _bell: Bell = field(factory=Bell)
    _stop: asyncio.Event = field(factory=asyncio.Event)
    _stop_now: asyncio.Event = field(factory=asyncio.Event)

    def stop(self) -> None:
        """Stop: lease no more and let handlers finish.  Called again: stop now."""
        if self._stop.is_set():
            self._stop_now.set()
        self._stop.set()

    def break_in(self) -> None:
        """End the run that blocks the loop, if one does past its time-out, by an exception in it.

        Called in the loop's thread from a signal handler, and nowhere else.
        """
        if self._executor is not None:
            self._executor.break_in()

    async def run(self) -> bool:
        """Work until stopped; whether the end of every run could be recorded.

        Raises StoreUnavailable when there is no store at the start.
        """
        loop = asyncio.get_running_loop()
        store = self.store()
        enrolment = self._enroll(store)
        executor = Executor(loop, self._bell, self.handlers, self.settings.begin)
        executor.unblock, executor.processes = self.unblock, self.processes
        self._executor = executor
        queues = enrolment.queues
        paced = (enrolment.id, queues, enrolment.names, self.settings, self.new_id)
        ticker, settling = Ticker(store, *paced), Settling(Ticker(self.store(), *paced), self._bell)
        done, failed = asyncio.Event(), threading.Event()
        ticks = TickLoop(
            store,
            ticker,
            settling,
            executor,
            self._bell,
            self.settings,
            on_buried=lambda: self._enroll(store).id,
            on_idle=partial(self._idle, loop),
            on_freed=self.wakeup.ring,
        )

        def tick_thread() -> None:
            try:
                ticks.run()
            except BaseException:
                failed.set()
                log.critical("the tick thread failed", exc_info=True)
                raise
            finally:
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=tick_thread, name="leasebook-tick", daemon=True).start()
        threading.Thread(target=settling.run, name="leasebook-settle", daemon=True).start()
        threading.Thread(target=self._listen, name="leasebook-wakeup", daemon=True).start()
        Monitor(self.store, self._stop.is_set).start()
        self.started.set()
        clean = False
        try:
            await self._until_stopped(done)
            await self._wind_down(ticks, executor, done)
        finally:
            self._stop.set()
            # Anything but a settled end leaves leases behind, which must be noticed as a death.
            clean = done.is_set() and ticks.settled and not failed.is_set()
            self._farewell(store, ticker.worker, clean=clean)
            executor.close()
            if done.is_set():
                store.close()
        return clean

    def _enroll(self, store: Store) -> Enrolment:
        """Report for work under a new id, and beat for it."""
        queues = self.settings.queues or tuple(
            sorted({handler.queue for handler in self.handlers.values()})
        )
        worker = Enrolment(
            id=f"{self.name}#{self.new_id().hex[-12:]}",
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            capacity=self.settings.concurrency,
            queues=queues,
            code_version=self.code_version,
            names=tuple(sorted(self.handlers)),
        )
        store.enroll(worker)
        self.heartbeat.stop()
        self.heartbeat.start(worker.id)
        log.info("worker started", worker=worker.id, queues=",".join(queues), pid=worker.pid)
        return worker

    def _listen(self) -> None:
        while not self._stop.is_set():
            if self.wakeup.wait(self.settings.poll * 5):
                self._bell.ring()

    def _idle(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.drain:
            loop.call_soon_threadsafe(self._stop.set)

    async def _until_stopped(self, done: asyncio.Event) -> None:
        while not await self._any(self.settings.heartbeat, self._stop, done):
            self.heartbeat.mend()

    async def _wind_down(self, ticks: TickLoop, executor: Executor, done: asyncio.Event) -> None:
        """Handlers get ``drain`` seconds to finish, then ``cancel`` to clean up, then lose."""
        drain, cancel = self.settings.drain, self.settings.cancel
        settle = self.settings.settle
        log.info("worker stopping", runs=executor.live)
        ticks.give_up_at = time.monotonic() + drain + cancel + settle
        ticks.stop()
        if not await self._settled(done, drain):
            log.warning("stop interrupts handlers", runs=executor.live)
            executor.interrupt()
            if not await self._settled(done, cancel):
                executor.abandon()
                ticks.give_up_at = min(ticks.give_up_at, time.monotonic() + settle)
                self._bell.wake()
                # The tick thread may be in a call that answers no more: it dies with the process.
                await self._any(settle + self.settings.farewell / 2, done)

    async def _settled(self, done: asyncio.Event, seconds: float) -> bool:
        """Whether the tick thread ended within ``seconds``; a second ``stop`` cuts it short."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if await self._any(min(left, self.settings.heartbeat), done, self._stop_now):
                break
            self.heartbeat.mend()
        return done.is_set()

    async def _any(self, seconds: float, *events: asyncio.Event) -> bool:
        """Wait until one of the events is set, at most ``seconds``; whether one is."""
        waits = [asyncio.ensure_future(each.wait()) for each in events]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        return any(each.is_set() for each in events)

    def _farewell(self, store: Store, worker: str, *, clean: bool) -> None:
        self.wakeup.close()
        if not clean:
            self.heartbeat.leave()
            log.error("worker stopped with unsettled runs", worker=worker)
            return
        self.heartbeat.stop()
        try:
            store.leave(worker)
        except StoreUnavailable as error:
            log.warning("could not sign off", worker=worker, error=str(error)[:300])
        log.info("worker stopped", worker=worker)
