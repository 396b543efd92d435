"""The runs of one worker, and the way of a job from the tick thread to its handler."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

from attrs import define, evolve, field

from ...domain.job import Job
from ...domain.values import ReleaseReason
from ..app.registry import JobType
from ..app.run import Run
from .answers import NEVER_STARTED, Answer, Broke, GaveBack, RanOver, Report
from .processes import ProcessCall

OUTAGE = ReleaseReason.OUTAGE
EAGER = sys.version_info >= (3, 12)


@define(eq=False)
class Execution:
    """One live run: the job as leased, the face its handler has, and when it must be over.

    ``begun``: its handler may have done something.
    """

    job: Job
    run: Run
    handler: JobType
    deadline: float
    task: asyncio.Task[None] | None = None
    call: ProcessCall | None = None
    begun: bool = False
    stopping: bool = False

    def report(self, answer: Answer) -> Report:
        """How it ended.  What a run raises that was told to end, it raises because of that.

        One whose time is over before it began, on a loop that stood still, has not run at all.
        """
        if self.stopping and isinstance(answer, Broke):
            answer = evolve(answer, interrupted=True)
        if self.stopping and isinstance(answer, GaveBack) and answer.reason is OUTAGE:
            # That this worker stops is nobody else's outage.
            answer = evolve(answer, reason=ReleaseReason.SHUTDOWN, delay=0.0)
        if isinstance(answer, RanOver) and not self.begun:
            answer = NEVER_STARTED
        return Report(self.job, answer)


@define(eq=False)
class Tasks:
    """The tasks of runs, which a loop itself holds by weak references only.

    (Callbacks of the tasks could let go of them too, for a turn of the loop each.)
    """

    _held: set[asyncio.Task[None]] = field(factory=set[asyncio.Task[None]])

    def begin(
        self,
        execution: Execution,
        coroutine: Coroutine[Any, Any, None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Begin the task of a run: at once where Python can, up to where it first waits."""
        if EAGER and loop.get_task_factory() is None:
            # Most loops take a turn to begin a task, which costs as much as the whole rest of it.
            asyncio.Task(coroutine, loop=loop, eager_start=True)  # type: ignore[call-arg]
            return
        task = loop.create_task(coroutine)
        if not task.done():
            self._hold(execution, task)

    def began(self, execution: Execution) -> None:
        """Hold the task of a run that has just begun, if it was not there before it did."""
        if execution.task is None and (task := asyncio.current_task()) is not None:
            self._hold(execution, task)

    def _hold(self, execution: Execution, task: asyncio.Task[None]) -> None:
        execution.task = task
        self._held.add(task)

    def ended(self, execution: Execution) -> None:
        """Let go of a task that is in its last lines, or will never begin."""
        if execution.task is not None:
            self._held.discard(execution.task)

    def cancel(self, execution: Execution) -> None:
        """Cancel a task.  The code of one that has not begun is never entered."""
        if execution.task is not None:
            execution.task.cancel()
            if not execution.begun:
                self.ended(execution)


@define(eq=False)
class Handover:
    """Jobs on their way from the tick thread to the loop.  Whoever takes one out has it."""

    jobs: list[Job]
    since: float

    def take(self) -> Iterator[Job]:
        """One after the other: a handler that begins at once may block the loop before the next."""
        while self.jobs:
            try:
                job = self.jobs.pop(0)
            except IndexError:  # the other thread was faster
                return
            yield job
