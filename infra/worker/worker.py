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
from ..ports import Enrolment, Store, StoreUnavailable, Wakeup
from .bell import Bell
from .executor import Executor
from .logs import log
from .loop import TickLoop
from .monitor import Monitor
from .settings import WorkerSettings
from .tick import Ticker

#: What a stop may take beyond ``drain`` and ``cancel``: to settle and to say good-bye.
SETTLE_SECONDS = 5.0


class Heartbeat(Protocol):
    """Beats for a worker from somewhere that its handlers cannot hold up."""

    def start(self, worker: str) -> None:
        """Begin to beat for the worker of this id."""
        ...

    def stop(self) -> None:
        """Stop beating, without burying the worker."""
        ...

    def mend(self) -> None:
        """Start again what should beat and does not."""
        ...


@define(eq=False)
class Worker:
    """Leases jobs of a store and runs their handlers.

    ``store`` opens a store for the tick thread, ``new_id`` makes UUIDv7s.  ``run`` returns when the
    worker has stopped: by ``stop``, or in a drain when nothing is left that is due.
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
    _bell: Bell = field(factory=Bell)
    _stop: asyncio.Event = field(factory=asyncio.Event)
    _stop_now: asyncio.Event = field(factory=asyncio.Event)

    def stop(self) -> None:
        """Stop: lease no more and let handlers finish.  Called again: stop now."""
        if self._stop.is_set():
            self._stop_now.set()
        self._stop.set()

    async def run(self) -> None:
        """Work until stopped.  Raises StoreUnavailable when there is no store at the start."""
        loop = asyncio.get_running_loop()
        store = self.store()
        enrolment = self._enroll(store)
        executor = Executor(loop, self._bell, self.handlers, self.settings.begin)
        queues = enrolment.queues
        ticker = Ticker(
            store, enrolment.id, queues, tuple(sorted(self.handlers)), self.settings, self.new_id
        )
        done = asyncio.Event()
        ticks = TickLoop(
            store,
            ticker,
            executor,
            self._bell,
            self.settings,
            on_buried=lambda: self._enroll(store).id,
            on_idle=partial(self._idle, loop),
        )

        def tick_thread() -> None:
            try:
                ticks.run()
            except BaseException:
                log.critical("the tick thread failed", exc_info=True)
                raise
            finally:
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=tick_thread, name="leasebook-tick", daemon=True).start()
        threading.Thread(target=self._listen, name="leasebook-wakeup", daemon=True).start()
        Monitor(self.store, self._stop.is_set).start()
        try:
            await self._until_stopped(done)
            await self._wind_down(ticks, executor, done)
        finally:
            self._farewell(store, ticker.worker, executor)

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
        waits = [asyncio.ensure_future(each.wait()) for each in (self._stop, done)]
        every, first = self.settings.heartbeat, asyncio.FIRST_COMPLETED
        while not (await asyncio.wait(waits, timeout=every, return_when=first))[0]:
            self.heartbeat.mend()
        for each in waits:
            each.cancel()

    async def _wind_down(self, ticks: TickLoop, executor: Executor, done: asyncio.Event) -> None:
        """Handlers get ``drain`` seconds to finish, then ``cancel`` to clean up, then lose."""
        drain, cancel = self.settings.drain, self.settings.cancel
        ticks.give_up_at = time.monotonic() + drain + cancel + SETTLE_SECONDS
        ticks.stop()
        if not await self._settled(done, drain):
            log.warning("stop interrupts handlers", runs=executor.live)
            executor.interrupt()
            if not await self._settled(done, cancel):
                executor.abandon()
                ticks.give_up_at = time.monotonic() + SETTLE_SECONDS
                await done.wait()

    async def _settled(self, done: asyncio.Event, seconds: float) -> bool:
        """Whether the tick thread ended within ``seconds``; a second ``stop`` cuts it short."""
        waits = [asyncio.ensure_future(each.wait()) for each in (done, self._stop_now)]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        return done.is_set()

    def _farewell(self, store: Store, worker: str, executor: Executor) -> None:
        self.heartbeat.stop()
        self.wakeup.close()
        try:
            store.leave(worker)
        except StoreUnavailable as error:
            log.warning("could not sign off", worker=worker, error=str(error)[:300])
        finally:
            executor.close()
            store.close()
        log.info("worker stopped", worker=worker)
