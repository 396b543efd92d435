"""How a lease begins, goes on and ends without an answer."""

from __future__ import annotations

from ..commands import ExpireLease, Renew, TakeLease
from ..errors import IllegalTransition, NotDue
from ..events import Event, Failed, Heartbeat, Leased, LeaseExpired
from ..job import Job
from ..states import WAITING, State
from ..values import ExpiryCause, OnExhausted, OnExpired, Outcome
from .guard import existing, holder, moment, span
from .interruption import aborted, uncertain
from .waiting import block, orphaned

WORDS = {
    ExpiryCause.LEASE_ENDED: "its lease ended without an answer",
    ExpiryCause.WORKER_LOST: "its worker died",
    ExpiryCause.TIMED_OUT: "it ran past its time-out",
}


def take(job: Job | None, command: TakeLease) -> tuple[Event, ...]:
    """Lease a due job, unless an earlier one must end first: then it is blocked behind that one.

    One that outlived its ``expires_at`` while waiting fails instead, and so does one whose parent
    has failed.
    """
    job = existing(job, "lease")
    if job.state not in WAITING:
        raise IllegalTransition(job.id, "lease", job.state, "Only a waiting job can be leased.")
    at = moment(job, command.at)
    if job.due_at > at:
        raise NotDue(job.id, "lease", job.due_at.isoformat(), at.isoformat())
    if job.blocked_by is not None:
        # An earlier release has moved it, and knows of no blocks.
        return block(job, at, job.blocked_by)
    spec = job.spec
    if spec.expires_at is not None and spec.expires_at <= at and job.state is not State.RETRY_WAIT:
        note = f"still waiting when it expired at {spec.expires_at.isoformat()}"
        return (Failed(at, None, Outcome.EXPIRED, False, note),)
    if command.parent_failed:
        return orphaned(at)
    if command.behind is not None:
        return block(job, at, command.behind)
    until = at + span(spec.policy.lease)
    return (Leased(at, command.worker, until, job.starts + 1),)


def renew(job: Job | None, command: Renew) -> tuple[Event, ...]:
    """Extend the lease, never past the run's time-out; nothing happens when it would not grow.

    (A lease that has ended but was not expired by anybody is still the holder's to renew.)
    """
    job, _ = holder(job, "renew the lease of", command.token)
    deadline = job.deadline
    assert deadline is not None
    until = min(command.lease_until, deadline)
    if until <= job.due_at:
        return ()
    return (Heartbeat(moment(job, command.at), command.token, until),)


def expire(job: Job | None, command: ExpireLease) -> tuple[Event, ...]:
    """End a lease without an answer: it spends an attempt, and with the last one the job fails.

    A type that aborts does not run again at all, nor does a job with an effect in progress.
    """
    job, _ = holder(job, "expire the lease of", command.token)
    at = moment(job, command.at)
    if command.cause is ExpiryCause.LEASE_ENDED and job.due_at > at:
        raise NotDue(job.id, "expire the lease of", job.due_at.isoformat(), at.isoformat())
    if (unclear := uncertain(job, at, WORDS[command.cause], command.cause)) is not None:
        return unclear
    policy = job.spec.policy
    if policy.on_expired is OnExpired.ABORT:
        return (aborted(at, command.token, WORDS[command.cause], command.cause),)
    if job.attempts + 1 > policy.retries:
        held = policy.on_exhausted is OnExhausted.HOLD
        error = f"interrupted on its last attempt: {WORDS[command.cause]}"
        return (Failed(at, command.token, Outcome.LOST, held, error, command.cause),)
    return (LeaseExpired(at, command.token, command.cause, at),)
