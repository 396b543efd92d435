"""What running handlers ask to have written: it queues for the next tick and awaits its commit."""

from __future__ import annotations

from concurrent.futures import Future

from attrs import frozen

from ...domain.job import Job
from ..app.writing import EffectCommand
from .answers import Write
from .bell import Bell


@frozen
class BellWriter:
    """Implements ``Writer`` of the handlers' side: the tick thread is woken at once."""

    bell: Bell

    def submit(self, job: Job, command: EffectCommand) -> Future[Job]:
        """The job once the command is committed, or the error with which it was refused."""
        written: Future[Job] = Future()
        self.bell.put(Write(job, command, written))
        return written

    def wait(self, written: Future[Job]) -> Job:
        """Wait in a thread of a handler."""
        return written.result()
