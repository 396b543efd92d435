"""What running handlers ask to have written: it queues for the next tick and awaits its commit."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from concurrent.futures import Future
from uuid import UUID

from attrs import evolve, frozen

from ...domain.errors import LeasebookError
from ...domain.job import Job
from ..app.writing import EffectCommand
from .answers import Entry, Write
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


def as_known(entry: Entry, running: Mapping[UUID, Job]) -> tuple[Entry, bool]:
    """The entry with its job as the worker knows it, and whether it is of a run that goes on."""
    leased = running.get(entry.job.id)
    if leased is None or leased.lease != entry.job.lease:
        return entry, False
    return (entry if leased is entry.job else evolve(entry, job=leased)), True


def reply(write: Write, answer: Job | LeasebookError, running: MutableMapping[UUID, Job]) -> None:
    """Let the handler go on that waits for its write, and remember its job as it is now."""
    if isinstance(answer, LeasebookError):
        write.reply.set_exception(answer)
        return
    leased = running.get(answer.id)
    if leased is not None and leased.lease == answer.lease and leased.version < answer.version:
        running[answer.id] = answer
    write.reply.set_result(answer)
