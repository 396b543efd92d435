"""From what a handler did to the answer its run reports."""

from __future__ import annotations

from ...domain.job import Job
from ...domain.values import ReleaseReason
from ..app.errors import ResultRefused
from ..app.failures import is_outage, retry_after
from ..app.redaction import bounded, redact
from ..app.registry import JobType
from ..app.signals import Fail, RateLimited, RetryIn, Snooze
from .answers import Answer, Broke, GaveBack, Succeeded
from .failure import describe

#: A handler that returned nothing, as most do.
NOTHING = Succeeded()
NOTE_CHARS_MAX = 200
#: A job that somebody else's outage has given back so often fails like any other from then on.
OUTAGES_MAX = 20
OUTAGE_SECONDS_FIRST = 2.0
OUTAGE_SECONDS_MAX = 300.0


def succeeded(handler: JobType, value: object) -> Answer:
    """The answer for a handler that returned ``value``; raises ResultRefused."""
    return NOTHING if value is None else Succeeded(handler.encode_result(value))


def answer_for(error: BaseException, handler: JobType, job: Job) -> Answer:
    """The answer for a handler that raised ``error``: a signal it sent, or a failure.

    Raises nothing: an error is anybody's object, and one that cannot even be described must not
    keep its run from ending.
    """
    try:
        return _answer(error, handler, job)
    except BaseException:
        return Broke("an error that cannot be described", _delay(handler, job))


def _answer(error: BaseException, handler: JobType, job: Job) -> Answer:
    match error:
        case Snooze():
            return GaveBack(ReleaseReason.SNOOZE, error.seconds)
        case RateLimited():
            return GaveBack(ReleaseReason.RATE_LIMITED, error.retry_after)
        case RetryIn():
            return Broke(describe(error), error.seconds)
        case Fail():
            text = bounded(redact(error.reason), NOTE_CHARS_MAX * 5)
            return Broke(text, _delay(handler, job), error.retry)
        case ResultRefused():
            return Broke(describe(error), 0.0, retry=False)
        case _:
            return _failed(error, handler, job)


def _failed(error: BaseException, handler: JobType, job: Job) -> Answer:
    """An error that no handler raised on purpose: whose fault is it?"""
    text = describe(error)
    unspent = job.starts - job.attempts - 1
    if unspent < OUTAGES_MAX:
        if (seconds := retry_after(error)) is not None:
            return GaveBack(ReleaseReason.RATE_LIMITED, seconds, bounded(text, NOTE_CHARS_MAX))
        if is_outage(error):
            seconds = min(OUTAGE_SECONDS_MAX, OUTAGE_SECONDS_FIRST * 2.0**unspent)
            return GaveBack(ReleaseReason.OUTAGE, seconds, bounded(text, NOTE_CHARS_MAX))
    return Broke(text, _delay(handler, job))


def _delay(handler: JobType, job: Job) -> float:
    """The wait that the registry of this worker sets after the attempt that just ended."""
    return handler.retry.seconds(job.id, job.attempts + 1)
