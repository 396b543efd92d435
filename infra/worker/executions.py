"""The runs of one worker, and the way of a job from the tick thread to its handler."""

from __future__ import annotations

import asyncio

from attrs import define

from ...domain.job import Job
from ..app.registry import JobType
from ..app.run import Run
from .processes import ProcessCall


@define(eq=False)
class Execution:
    """One live run: the job as leased, the face its handler has, and when it must be over."""

    job: Job
    run: Run
    handler: JobType
    deadline: float
    task: asyncio.Task[None] | None = None
    call: ProcessCall | None = None
    stopping: bool = False


@define(eq=False)
class Handover:
    """Jobs on their way from the tick thread to the loop.  Whoever empties it has the jobs."""

    jobs: list[Job]
    since: float

    def take(self) -> list[Job]:
        """All of them, once."""
        jobs: list[Job] = []
        while self.jobs:
            try:
                jobs.append(self.jobs.pop(0))
            except IndexError:  # the other thread was faster
                break
        return jobs
