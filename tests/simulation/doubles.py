"""What stands in for threads, the event loop and the clock, so that the real worker runs by turns.

Each double does what its original promises and nothing more; the worker's own code runs on top,
unchanged.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import Context
from itertools import count
from typing import Any, cast
from unittest.mock import patch

from leasebook.infra.worker import executor, heart_thread, loop
from leasebook.infra.worker.threads import HandlerThreads

from .scheduler import Actor, Process, Scheduler

#: Short, so that an inbox that was refused is tried again within a world.
INBOX_PAUSE_SECONDS = 3.0


class VirtualEvent:
    """``threading.Event`` between actors."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False
        self._waiting: list[Actor] = []

    def is_set(self) -> bool:
        return self._set

    def clear(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True
        for actor in self._waiting:
            self._scheduler.wake(actor)
        self._waiting.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set.  It may come back early, as when a clock has jumped."""
        if not self._set:
            actor = self._scheduler.current
            assert actor is not None
            self._waiting.append(actor)
            self._scheduler.wait(timeout)
        return self._set


class VirtualThreads(HandlerThreads):
    """Threads of handlers are actors of the worker's process."""

    def __init__(self, start: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._start = start

    def submit(self, work: Callable[[], None]) -> None:
        self._start(work)


class VirtualLoop:
    """As much of an event loop as tasks and sleeps need.  Nothing in it lets others have a turn.

    ``blocked_until`` is how a handler plays one that computes: until then nothing runs here.
    """

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler = scheduler
        self._process = process
        self._soon: deque[asyncio.Handle] = deque()
        self._later: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._actor: Actor | None = None
        self.blocked_until = 0.0
        self._gone = False
        self._tasks: list[asyncio.Task[Any]] = []
        self.face = cast(asyncio.AbstractEventLoop, self)

    def start(self) -> None:
        """Let it run as an actor of its process."""
        self._actor = self._scheduler.spawn(
            self._process, f"{self._process.name}.loop", self._serve
        )

    def time(self) -> float:
        return self._scheduler.now + self._process.skew

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self.face, context)
        self._soon.append(handle)
        if self._actor is not None:
            self._scheduler.wake(self._actor)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        when = self.time() + delay
        handle = asyncio.TimerHandle(when, callback, args, self.face, context)
        heapq.heappush(self._later, (when, next(self._numbers), handle))
        return handle

    def create_task(self, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(cast(Coroutine[Any, Any, Any], coro), loop=self.face, **kwargs)
        self._tasks.append(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self.face)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._gone:
            raise AssertionError(context["message"]) from context.get("exception")

    def close(self) -> None:
        """Its process is gone: end what was under way here and now, not when memory is freed."""
        self._gone = True
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                assert coroutine is not None
                coroutine.close()
        self._tasks.clear()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _serve(self) -> None:
        scheduler = self._scheduler
        while True:
            if (left := self.blocked_until - scheduler.now) > 0:
                scheduler.sleep(left)
            self._run_once()
            if self._soon:
                scheduler.pause()
            elif self._later:
                scheduler.wait(self._later[0][0] - self.time())
            else:
                scheduler.wait()

    def _run_once(self) -> None:
        now = self.time()
        while self._later and self._later[0][0] <= now:
            self._soon.append(heapq.heappop(self._later)[2])
        asyncio._set_running_loop(self.face)
        try:
            for _ in range(len(self._soon)):
                handle = self._soon.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)


class VirtualTime:
    """Stands in for the module ``time`` in the worker: each process has a clock of its own."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def monotonic(self) -> float:
        actor = self._scheduler.current
        return self._scheduler.now + (0.0 if actor is None else actor.process.skew)


@contextmanager
def virtual_time(scheduler: Scheduler) -> Generator[None]:
    """Let the worker's code read the scheduler's clock, and pace itself for a short life."""
    time = VirtualTime(scheduler)
    with (
        patch.object(loop, "time", time),
        patch.object(loop, "INBOX_PAUSE_SECONDS", INBOX_PAUSE_SECONDS),
        patch.object(executor, "time", time),
        patch.object(heart_thread, "time", time),
    ):
        yield
