"""How a job that waits comes to wait for another time."""

from __future__ import annotations

from ..commands import Reschedule
from ..errors import IllegalTransition, InvalidValue
from ..events import Event, Rescheduled
from ..job import Job
from ..states import State
from .guard import existing, moment

MOVABLE = frozenset({State.QUEUED, State.RETRY_WAIT})


def reschedule(job: Job | None, command: Reschedule) -> tuple[Event, ...]:
    """Another due time for a job that waits alone; nothing happens when it is the same.

    (A job that is due keeps its place in the queue when it is asked to be due at once.)
    """
    job = existing(job, "reschedule")
    if job.state not in MOVABLE:
        why = "Only a job that waits can be moved, and of a group its window says when it is due."
        raise IllegalTransition(job.id, "reschedule", job.state, why)
    at = moment(job, command.at)
    due, expires = max(at, command.due_at), job.spec.expires_at
    if due == job.due_at or (due == at and job.due_at <= at):
        return ()
    if expires is not None and expires <= due and job.state is State.QUEUED:
        raise InvalidValue(
            "run_at",
            f"{due.isoformat()} for job {job.id}, which expires at {expires.isoformat()},",
            "move it to a time before that",
        )
    return (Rescheduled(at, due),)
