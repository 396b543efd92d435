"""How a run ends with an answer."""

from __future__ import annotations

from datetime import timedelta

from ..commands import Complete, Fail, Release
from ..errors import InvalidValue
from ..events import Completed, Event, Failed, Released, RetryScheduled
from ..job import Job
from ..limits import check_seconds
from ..values import OnExhausted, OnExpired, Outcome, ReleaseReason
from .guard import holder, moment
from .interruption import STOPPED, aborted, uncertain


def complete(job: Job | None, command: Complete) -> tuple[Event, ...]:
    """The handler succeeded, or skipped on purpose."""
    job, _ = holder(job, "complete", command.token)
    if (unclear := uncertain(job, command.at)) is not None:
        return unclear
    if command.outcome not in (Outcome.DONE, Outcome.SKIPPED):
        raise InvalidValue("outcome", command.outcome, "complete with done or skipped")
    return (Completed(moment(job, command.at), command.token, command.result, command.outcome),)


def fail(job: Job | None, command: Fail) -> tuple[Event, ...]:
    """The handler failed: another attempt if it is of use and the budget allows, else the end.

    A type that aborts has no other attempt after a run that broke because it was interrupted.
    """
    job, _ = holder(job, "fail", command.token)
    if (unclear := uncertain(job, command.at, command.error)) is not None:
        return unclear
    at, policy = moment(job, command.at), job.spec.policy
    if command.interrupted and command.retry and policy.on_expired is OnExpired.ABORT:
        return (aborted(at, command.token, command.error),)
    if command.retry and job.attempts < policy.retries:
        due = at + _delay(command.delay)
        return (RetryScheduled(at, command.token, command.error, due),)
    outcome = Outcome.EXHAUSTED if command.retry else Outcome.REJECTED
    held = policy.on_exhausted is OnExhausted.HOLD
    return (Failed(at, command.token, outcome, held, command.error),)


def release(job: Job | None, command: Release) -> tuple[Event, ...]:
    """The worker gives the job back and the budget is untouched.

    One whose type is not to be run again is aborted when the worker stops in the middle of it.
    """
    job, _ = holder(job, "release", command.token)
    if (unclear := uncertain(job, command.at, command.note or "")) is not None:
        return unclear
    at = moment(job, command.at)
    aborts = job.spec.policy.on_expired is OnExpired.ABORT
    if aborts and command.reason is ReleaseReason.SHUTDOWN:
        why = STOPPED if command.note is None else f"{STOPPED}: {command.note}"
        return (aborted(at, command.token, why),)
    due = at + _delay(command.delay)
    return (Released(at, command.token, command.reason, due, command.note),)


def _delay(seconds: float) -> timedelta:
    """A wait as a span of time.  Raises InvalidValue for one that is negative or no number."""
    return timedelta(seconds=check_seconds("delay", seconds))
