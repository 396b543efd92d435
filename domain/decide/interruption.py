"""What becomes of a run that ended before it could say what it has done."""

from __future__ import annotations

from datetime import datetime

from ..events import Failed
from ..job import Job
from ..limits import ERROR_CHARS_MAX
from ..values import ExpiryCause, Outcome
from .guard import moment

STOPPED = "its worker was stopped in the middle of it"


def aborted(at: datetime, token: int, why: str, cause: ExpiryCause | None = None) -> Failed:
    """The end of a job of a type that is not run again after an interruption."""
    text = f"aborted: {why}"[:ERROR_CHARS_MAX]
    return Failed(at, token, Outcome.ABORTED, held=False, error=text, cause=cause)


def uncertain(
    job: Job, at: datetime, error: str = "", cause: ExpiryCause | None = None
) -> tuple[Failed] | None:
    """The end of a leased job with an effect in progress, None when it has none.

    Whatever else the run had to say: to run the handler again would repeat the effect or leave it
    out, and only somebody who asks at its destination can tell which of the two is right.
    """
    effect, lease = job.uncertain, job.lease
    if effect is None or lease is None:
        return None
    text = f"effect {effect.key} to {effect.destination} was begun and its end is not known"
    text = f"{text}: {error}" if error else text
    at = moment(job, at)
    text = text[:ERROR_CHARS_MAX]
    return (Failed(at, lease.token, Outcome.UNCERTAIN, held=True, error=text, cause=cause),)
