"""The questions that several decisions ask first."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from ..errors import IllegalTransition, StaleLease
from ..job import Job, Lease

NIL = UUID(int=0)


def existing(job: Job | None, command: str) -> Job:
    """The job, or IllegalTransition when there is none."""
    if job is None:
        raise IllegalTransition(NIL, command, "not there", "Enqueue it first.")
    return job


def absent(job: Job | None, command: str) -> None:
    """Raise IllegalTransition when the job is already there."""
    if job is not None:
        raise IllegalTransition(
            job.id, command, f"already {job.state}", "A job is born once; use a new id."
        )


def holder(job: Job | None, command: str, token: int) -> tuple[Job, Lease]:
    """The job and its lease when ``token`` is the one in force, else StaleLease."""
    job = existing(job, command)
    lease = job.lease
    if lease is None or lease.token != token:
        raise StaleLease(job.id, command, token, None if lease is None else lease.token)
    return job, lease


@lru_cache(maxsize=1_000)
def span(seconds: float) -> timedelta:
    """So many seconds, made once for each length: many jobs have a lease of the same."""
    return timedelta(seconds=seconds)


def moment(job: Job | None, at: datetime) -> datetime:
    """``at``, but never before the job's newest event: time in a stream does not run backwards."""
    return at if job is None or job.at <= at else job.at
