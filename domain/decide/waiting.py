"""How a job comes to wait for another, and goes on."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from ..commands import Unblock
from ..events import Blocked, Event, Failed, GroupClosed, Unblocked
from ..job import Job
from ..states import State
from ..values import CloseReason, Outcome
from .guard import existing, moment

PARENT_FAILED = "the job that it comes after has failed"


def block(job: Job, at: datetime, by: UUID) -> tuple[Event, ...]:
    """A waiting job waits for an earlier one, too.

    A group that must is closed first, so that its items are settled.
    """
    blocked = Blocked(at, by)
    if job.state is State.GROUPED:
        return (GroupClosed(at, CloseReason.BLOCKED, min(at, job.due_at)), blocked)
    return (blocked,)


def unblock(job: Job | None, command: Unblock) -> tuple[Event, ...]:
    """Be due again, now or at the later time that was asked for.  Nothing for who is not blocked.

    The time moves on to now, because workers look for what has come due since they looked last.
    """
    job = existing(job, "unblock")
    at = moment(job, command.at)
    if job.blocked_by is not None:
        return (Unblocked(at, max(at, job.due_at)),)
    if job.held and job.outcome is Outcome.PARENT_FAILED:
        return (Unblocked(at, at),)
    return ()


def orphaned(at: datetime) -> tuple[Event, ...]:
    """The job that this one comes after has failed: it is held until that one succeeds."""
    return (Failed(at, None, Outcome.PARENT_FAILED, held=True, error=PARENT_FAILED),)
