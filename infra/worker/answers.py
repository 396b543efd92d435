"""How a run ended, in the words of the handler's side, before the database's time is known."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias, assert_never

from attrs import frozen

from ...domain.commands import Command, Complete, ExpireLease, Fail, Release
from ...domain.job import Job
from ...domain.values import ExpiryCause, Json, Outcome, ReleaseReason


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
    """The answer of one run: ``job`` as it was leased, so that its lease is the run's own."""

    job: Job
    answer: Answer

    @property
    def token(self) -> int:
        """The lease token of the run."""
        lease = self.job.lease
        assert lease is not None
        return lease.token


def command_for(report: Report, at: datetime) -> Command:
    """What to ask of the job, now that the time is known."""
    token, answer = report.token, report.answer
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
