"""Where handlers run: coroutines as tasks on the loop, blocking functions in threads.

Each run ends with exactly one report.  Whoever takes the run out of the table of live runs first
reports it: the handler, the watchdog that saw its time-out, or the stop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial
from uuid import UUID

from attrs import define

from ...domain.job import Job
from ...domain.values import ReleaseReason
from ..app.registry import JobType
from ..app.run import Run
from .answers import Answer, GaveBack, RanOver, Report
from .bell import Bell
from .outcome import answer_for, succeeded
from .threads import HandlerThreads

WATCH_SECONDS = 0.25


@define(eq=False)
class Execution:
    """One live run: the job as leased, the face its handler has, and when it must be over."""

    job: Job
    run: Run
    handler: JobType
    deadline: float
    task: asyncio.Task[None] | None = None
    stopping: bool = False


class Executor:
    """Runs leased jobs and hands their reports to the bell.  Lives on one event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bell: Bell, handlers: Mapping[str, JobType]
    ) -> None:
        self._loop = loop
        self._bell = bell
        self._handlers = handlers
        self._threads = HandlerThreads()
        self._live: dict[UUID, Execution] = {}
        self._waking = False
        self._watching = False

    def start(self, jobs: Iterable[Job]) -> None:
        """Start runs; called from the tick thread."""
        self._loop.call_soon_threadsafe(self._start, tuple(jobs))

    def forget(self, jobs: Iterable[Job]) -> None:
        """Stop runs whose lease is lost; called from the tick thread.  They report nothing."""
        self._loop.call_soon_threadsafe(self._forget, tuple(jobs))

    def interrupt(self) -> None:
        """Ask every live run to end: coroutines are cancelled, threads see ``run.stopping``."""
        for execution in list(self._live.values()):
            execution.stopping = True
            execution.run.stopping = True
            if execution.task is not None:
                execution.task.cancel()

    def abandon(self) -> None:
        """Give back every run that is still live, without waiting for its handler."""
        for execution in list(self._live.values()):
            self._report(execution, GaveBack(ReleaseReason.SHUTDOWN))

    @property
    def live(self) -> int:
        """How many runs have not reported."""
        return len(self._live)

    def close(self) -> None:
        """Let idle threads end."""
        self._threads.close()

    def _start(self, jobs: tuple[Job, ...]) -> None:
        now = time.monotonic()
        for job in jobs:
            handler = self._handlers[job.spec.name]
            execution = Execution(job, Run(job), handler, now + job.spec.policy.timeout)
            self._live[job.id] = execution
            if handler.is_async:
                execution.task = self._loop.create_task(self._coroutine(execution))
            else:
                self._threads.submit(partial(self._blocking, execution))
        if self._live and not self._watching:
            self._watching = True
            self._loop.call_later(WATCH_SECONDS, self._watch)

    # Both catch BaseException: a handler that calls sys.exit must not stop its worker.

    async def _coroutine(self, execution: Execution) -> None:
        try:
            value = await execution.handler.invoke(execution.run, execution.job)
            answer = succeeded(execution.handler, value)
        except asyncio.CancelledError as error:
            if not execution.stopping:
                answer = answer_for(error, execution.handler, execution.job)
            else:
                answer = GaveBack(ReleaseReason.SHUTDOWN)
        except BaseException as error:
            answer = answer_for(error, execution.handler, execution.job)
        self._report(execution, answer)

    def _blocking(self, execution: Execution) -> None:
        try:
            value = execution.handler.invoke(execution.run, execution.job)
            answer = succeeded(execution.handler, value)
        except BaseException as error:
            answer = answer_for(error, execution.handler, execution.job)
        # A thread that was given up on reports all the same: its late result is refused on record.
        if self._live.get(execution.job.id) is execution:
            self._live.pop(execution.job.id, None)
        self._bell.put(Report(execution.job, answer))

    def _report(self, execution: Execution, answer: Answer) -> None:
        """Report from the loop: the tick thread is woken once for all runs that end together."""
        if self._live.get(execution.job.id) is not execution:
            return
        if self._live.pop(execution.job.id, None) is None:
            return
        self._bell.put_quietly(Report(execution.job, answer))
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        self._bell.wake()

    def _forget(self, jobs: tuple[Job, ...]) -> None:
        for job in jobs:
            execution = self._live.get(job.id)
            if execution is not None and execution.job.lease == job.lease:
                self._live.pop(job.id, None)
                self._end(execution)

    def _end(self, execution: Execution) -> None:
        execution.run.lost = True
        if execution.task is not None:
            execution.task.cancel()

    def _watch(self) -> None:
        """End runs that outlived their time-out.  Runs while there is anything to watch."""
        now = time.monotonic()
        for execution in list(self._live.values()):
            if now >= execution.deadline:
                self._report(execution, RanOver())
                self._end(execution)
        self._watching = bool(self._live)
        if self._watching:
            self._loop.call_later(WATCH_SECONDS, self._watch)
