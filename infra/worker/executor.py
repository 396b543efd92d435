"""Where handlers run: coroutines as tasks on the loop, blocking functions in threads.

Each run ends with exactly one report.  Whoever takes the run out of the table of live runs first
reports it: the handler, the watchdog that saw its time-out, or the stop.  A handler that answers
after that is reported too, so that its late result is refused on record.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from ...domain.job import Job
from ...domain.values import ReleaseReason
from ..app.registry import JobType
from ..app.run import Run
from ..app.writing import Writer
from .answers import NEVER_STARTED, NO_ROOM, GaveBack, RanOver, Report
from .bell import Bell
from .executions import Execution, Handover, Tasks
from .outcome import answer_for, succeeded
from .processes import HandlerProcesses, ProcessCall
from .threads import HandlerThreads
from .writes import BellWriter

WATCH_SECONDS = 0.25
#: A run that the loop itself has not ended so long after its time-out is ended from outside.
LOOP_SECONDS = 1.0


class RunOver(BaseException):
    """Raised into a coroutine that blocks its loop past its time-out."""


class Executor:
    """Runs leased jobs and hands their reports to the bell.  Lives on one event loop.

    ``begin`` is how many seconds the loop may let a leased job wait for its handler.  ``unblock``
    makes the loop's thread call ``break_in``, whatever it does; None where that is not possible.
    """

    unblock: Callable[[], None] | None = None
    processes: HandlerProcesses | None = None

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bell: Bell,
        handlers: Mapping[str, JobType],
        begin: float,
    ) -> None:
        self._loop = loop
        self._bell = bell
        self._handlers = handlers
        self._begin = begin
        self._threads = HandlerThreads()
        self._writer: Writer = BellWriter(bell)
        self._live: dict[UUID, Execution] = {}
        self._tasks = Tasks()
        self._handovers: deque[Handover] = deque()
        self._waking = False
        self._watching = False
        self._interrupted = False
        # Runs that were ended from outside, until the loop turns again.
        self._overrun: set[asyncio.Task[None]] = set()
        self._unblocked_at = self._looked_at = float("-inf")

    def start(self, jobs: Iterable[Job]) -> None:
        """Start runs; called from the tick thread."""
        handover = Handover(list(jobs), time.monotonic())
        self._handovers.append(handover)
        self._loop.call_soon_threadsafe(self._start, handover)

    def forget(self, jobs: Iterable[Job]) -> None:
        """Stop runs whose lease is lost; called from the tick thread."""
        self._loop.call_soon_threadsafe(self._forget, tuple(jobs))

    def responsive(self, now: float) -> bool:
        """Whether the loop begins what it is given; called from the tick thread.

        A coroutine that blocks its loop would keep whatever is leased now from running at all.
        """
        try:
            oldest = self._handovers[0]
        except IndexError:
            return True
        return now - oldest.since < self._begin

    def not_begun(self, now: float) -> Sequence[Report]:
        """What a loop that stands still leaves undone; called from the tick thread.

        Jobs that waited for too long to begin are given back, runs past their time-out are ended.
        """
        over = self._ended_from_outside(now)
        if self.responsive(now):
            return tuple(over)
        waiting = [job for each in tuple(self._handovers) for job in each.take()]
        return [*over, *(Report(job, NEVER_STARTED) for job in waiting)]

    def _ended_from_outside(self, now: float) -> list[Report]:
        over: list[Report] = []
        if now < self._looked_at + WATCH_SECONDS:
            return over
        self._looked_at = now
        for execution in tuple(self._live.values()):
            if now >= execution.deadline + LOOP_SECONDS and self._take(execution):
                over.append(execution.report(RanOver()))
                self._end_from_outside(execution)
        if self._overrun and self.unblock is not None and now >= self._unblocked_at + LOOP_SECONDS:
            self._unblocked_at = now
            self.unblock()
        return over

    def _end_from_outside(self, execution: Execution) -> None:
        execution.run.lost = True
        if execution.call is not None:
            execution.call.kill()
        if (task := execution.task) is not None:
            self._overrun.add(task)
            self._loop.call_soon_threadsafe(self._turned, task)

    def _turned(self, task: asyncio.Task[None]) -> None:
        """The loop turns again."""
        self._overrun.discard(task)
        task.cancel()

    def break_in(self) -> None:
        """Raise RunOver if the code that was just interrupted is a run past its time-out.

        Called from a signal handler in the loop's own thread, and nowhere else.  The signal may
        come from the heartbeat child, when no other thread of this process could run and notice.
        """
        task = asyncio.current_task(self._loop)
        if task is None:
            return
        now = time.monotonic()
        for execution in list(self._live.values()):
            late = now >= execution.deadline + LOOP_SECONDS
            if execution.task is task and late and self._take(execution):
                self._end_from_outside(execution)
                self._bell.put_quietly(execution.report(RanOver()))
                self._loop.call_soon_threadsafe(self._bell.wake)
        if task in self._overrun:
            raise RunOver

    def interrupt(self) -> None:
        """Ask every live run to end: coroutines are cancelled, threads see ``run.stopping``.

        What has not begun yet is given back, and nothing begins any more.
        """
        self._interrupted = True
        for execution in list(self._live.values()):
            execution.stopping = True
            execution.run.stopping = True
            if not execution.begun and self._take(execution):
                self._hand_in(execution.report(NEVER_STARTED))
            self._tasks.cancel(execution)
            if execution.call is not None:
                execution.call.terminate()

    def abandon(self) -> None:
        """Give back every run that is still live, without waiting for its handler."""
        for execution in list(self._live.values()):
            if self._take(execution):
                self._end(execution)
                self._hand_in(execution.report(GaveBack(ReleaseReason.SHUTDOWN)))

    @property
    def live(self) -> int:
        """How many runs have not reported."""
        return len(self._live)

    def close(self) -> None:
        """Let idle threads and processes end."""
        self._threads.close()
        if self.processes is not None:
            self.processes.close()

    def _start(self, handover: Handover) -> None:
        try:
            for job in handover.take():
                self._begin_run(job)
        finally:
            self._handovers.popleft()
        if self._live and not self._watching:
            self._watching = True
            self._loop.call_later(WATCH_SECONDS, self._watch)

    def _begin_run(self, job: Job) -> None:
        if self._interrupted:
            self._hand_in(Report(job, NEVER_STARTED))
            return
        handler = self._handlers[job.spec.name]
        run = Run(job, self._writer, handler.rows)
        execution = Execution(job, run, handler, time.monotonic() + job.spec.policy.timeout)
        if (earlier := self._live.get(job.id)) is not None:
            self._end(earlier)  # Its lease is gone: this worker has the job anew.
        self._live[job.id] = execution
        if handler.is_async:
            self._tasks.begin(execution, self._coroutine(execution), self._loop)
        else:
            self._start_thread(execution)

    def _start_thread(self, execution: Execution) -> None:
        execution.begun = True  # The thread begins whatever is decided here later.
        if execution.handler.executor == "process" and self.processes is not None:
            execution.call = ProcessCall(
                self.processes, execution.handler, execution.job, self._writer
            )
        try:
            self._threads.submit(partial(self._blocking, execution))
        except RuntimeError:  # the process may start no more threads
            self._take(execution)
            self._hand_in(execution.report(NO_ROOM))

    # Both catch BaseException: a handler that calls sys.exit must not stop its worker.

    async def _coroutine(self, execution: Execution) -> None:
        cancelled, execution.begun = False, True
        self._tasks.began(execution)
        if self._live.get(execution.job.id) is not execution:
            self._tasks.ended(execution)
            return  # It was given up before it could begin.
        try:
            value = await execution.handler.invoke(execution.run, execution.job)
            answer = succeeded(execution.handler, value)
        except asyncio.CancelledError as error:
            cancelled = True
            if execution.stopping:
                answer = GaveBack(ReleaseReason.SHUTDOWN)
            else:
                answer = answer_for(error, execution.handler, execution.job)
        except RunOver as error:
            cancelled = True
            answer = answer_for(error, execution.handler, execution.job)
        except BaseException as error:
            answer = answer_for(error, execution.handler, execution.job)
        # A run that was given up and cancelled for that has nothing to add.
        if self._take(execution) or not cancelled:
            self._hand_in(execution.report(answer))
        self._tasks.ended(execution)

    def _blocking(self, execution: Execution) -> None:
        """Call the handler in this thread, or wait here for the process that does."""
        handler, job, call = execution.handler, execution.job, execution.call
        try:
            if call is not None:
                answer = call.run()
            else:
                answer = succeeded(handler, handler.invoke(execution.run, job))
        except BaseException as error:
            answer = answer_for(error, handler, job)
        self._take(execution)
        if answer is not None:  # else it was killed, by somebody who has said why
            self._bell.put(execution.report(answer))

    def _take(self, execution: Execution) -> bool:
        """Take the run out of the table; whether it was there.  A later run of the job stays."""
        if self._live.get(execution.job.id) is not execution:
            return False
        return self._live.pop(execution.job.id, None) is not None

    def _hand_in(self, report: Report) -> None:
        """Report from the loop: the tick thread is woken once for all runs that end together."""
        self._bell.put_quietly(report)
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
                self._take(execution)
                self._end(execution)

    def _end(self, execution: Execution) -> None:
        execution.run.lost = True
        self._tasks.cancel(execution)
        if execution.call is not None:
            execution.call.kill()

    def _watch(self) -> None:
        """End runs that outlived their time-out.  Runs while there is anything to watch."""
        now = time.monotonic()
        for execution in list(self._live.values()):
            if now >= execution.deadline and self._take(execution):
                self._hand_in(execution.report(RanOver()))
                self._end(execution)
        self._watching = bool(self._live)
        if self._watching:
            self._loop.call_later(WATCH_SECONDS, self._watch)
