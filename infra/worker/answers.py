"""What comes from runs for the next tick, before the database's time is known.

How a run ended, in the words of the handler's side, and what one that goes on has to write.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, assert_never

from attrs import evolve

from ...domain.commands import Command, Complete, ExpireLease, Fail, Release
from ...domain.frozen import frozen
from ...domain.job import Job
from ...domain.values import ExpiryCause, Json, Outcome, ReleaseReason
from ..app.writing import EffectCommand

if TYPE_CHECKING:
    # The heartbeat child reads this too, and has to be quick.
    from concurrent.futures import Future


@frozen
class Succeeded:
    """The handler returned; ``result`` is the JSON document of its value."""

    result: Json = "null"
    outcome: Outcome = Outcome.DONE


@frozen
class Broke:
    """The handler raised.  ``error`` is redacted and bounded, ``delay`` seconds until the retry.

    ``interrupted``: its process died, or it raised because its worker stops.
    """

    error: str
    delay: float
    retry: bool = True
    interrupted: bool = False


@frozen
class GaveBack:
    """The run ended without an outcome of its own, and spends nothing."""

    reason: ReleaseReason
    delay: float = 0.0
    note: str | None = None


#: A lease whose run was never begun.
NEVER_STARTED = GaveBack(ReleaseReason.NEVER_STARTED)
#: The system has no thread or process for it now, but perhaps in a second.
NO_ROOM = GaveBack(ReleaseReason.NEVER_STARTED, 1.0)


@frozen
class RanOver:
    """The run outlived its time-out."""


Answer: TypeAlias = Succeeded | Broke | GaveBack | RanOver


@frozen
class Report:
    """The answer of one run: ``job`` under its lease, as its worker last knew it."""

    job: Job
    answer: Answer

    @property
    def token(self) -> int:
        """The lease token of the run."""
        lease = self.job.lease
        assert lease is not None
        return lease.token


@frozen(eq=False)
class Write:
    """What a run that goes on has to write: a command whose time is to be stamped.

    ``job`` is as of a Report.  ``reply`` gets the job once the command is committed, or the error.
    """

    job: Job
    command: EffectCommand
    reply: Future[Job]

    @property
    def token(self) -> int:
        """The lease token of the run."""
        return self.command.token


Entry: TypeAlias = Report | Write


def command_for(entry: Entry, at: datetime) -> Command:
    """What to ask of the job, now that the time is known."""
    if isinstance(entry, Write):
        return evolve(entry.command, at=at)
    token, answer = entry.token, entry.answer
    match answer:
        case Succeeded():
            return Complete(at, token, answer.result, answer.outcome)
        case Broke():
            return Fail(at, token, answer.error, answer.delay, answer.retry, answer.interrupted)
        case GaveBack():
            return Release(at, token, answer.reason, answer.delay, answer.note)
        case RanOver():
            return ExpireLease(at, token, ExpiryCause.TIMED_OUT)
    assert_never(answer)
