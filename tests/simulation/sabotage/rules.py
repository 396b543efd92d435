"""Broken rules: what ``decide`` must not let through, let through."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from attrs import evolve as replace

from leasebook.domain import Job, Lease
from leasebook.domain.commands import ExpireLease, Fail, Release, Renew, TakeLease
from leasebook.domain.decide import finish, lease
from leasebook.domain.decide.guard import holder
from leasebook.domain.events import (
    Event,
    Heartbeat,
    Leased,
    LeaseExpired,
    Released,
    RetryScheduled,
)
from leasebook.domain.evolve import evolve
from leasebook.infra.worker import heart, tick

Planted = AbstractContextManager[Any]


def always(answer: object) -> Callable[..., Any]:
    """Something that answers every question alike."""

    def reply(*given: object) -> object:
        return answer

    return reply


@contextmanager
def both(*planted: Planted) -> Generator[None]:
    """Several bugs that only together do harm."""
    with ExitStack() as stack:
        for each in planted:
            stack.enter_context(each)
        yield


def anybody(job: Job | None, command: str, token: int) -> tuple[Job, Lease]:
    """A job and its lease, whoever's it is."""
    if job is None or job.lease is None:
        return holder(job, command, token)
    return job, job.lease


def no_fencing() -> Planted:
    """A late result counts as long as anybody holds a lease of the job."""

    return patch.object(finish, "holder", anybody)


def token_resets() -> Planted:
    """The lease token is the number of the attempt, which a job that was given back has twice."""

    def reset(job: Job | None, event: Event) -> Job:
        after = evolve(job, event)
        if isinstance(event, Leased) and after.lease is not None:
            return replace(after, lease=replace(after.lease, token=after.attempts + 2))
        return after

    return patch("leasebook.domain.decide.evolve", reset)


def expiry_is_free() -> Planted:
    """A lease that ends without an answer never ends the job, whatever its budget says."""

    def expire(job: Job | None, command: ExpireLease) -> tuple[Event, ...]:
        found, _ = holder(job, "expire", command.token)
        at = max(found.at, command.at)
        return (LeaseExpired(at, command.token, command.cause, at),)

    return patch.object(lease, "expire", expire)


def retry_ignores_budget() -> Planted:
    """A failed run is always followed by another."""

    def fail(job: Job | None, command: Fail) -> tuple[Event, ...]:
        found, _ = holder(job, "fail", command.token)
        at = max(found.at, command.at)
        due = at + timedelta(seconds=command.delay)
        return (RetryScheduled(at, command.token, command.error, due),)

    return patch.object(finish, "fail", fail)


def renews_past_time_out() -> Planted:
    """A heartbeat keeps the lease of a run for as long as it hangs."""

    def renew(job: Job | None, command: Renew) -> tuple[Event, ...]:
        found, _ = holder(job, "renew", command.token)
        return (Heartbeat(max(found.at, command.at), command.token, command.lease_until),)

    def until(job: Job, at: Any) -> Any:
        return at + timedelta(seconds=job.spec.policy.lease)

    return both(patch.object(lease, "renew", renew), patch.object(heart, "renew_until", until))


def runs_what_expired() -> Planted:
    """Nobody looks whether a job has outlived its time when its turn comes."""
    take = lease.take

    def careless(job: Job | None, command: TakeLease) -> tuple[Event, ...]:
        if job is not None and job.spec.expires_at is not None:
            job = replace(job, spec=replace(job.spec, expires_at=None))
        return take(job, command)

    return patch.object(lease, "take", careless)


def suspects_together() -> Planted:
    """Jobs that may have killed their worker start all at once."""
    return patch.object(tick, "suspects_allowed", always(1_000))


def aborts_are_forgotten() -> Planted:
    """A job of a type that aborts is run again like any other when its worker is stopped."""

    def release(job: Job | None, command: Release) -> tuple[Event, ...]:
        found, _ = holder(job, "release", command.token)
        at = max(found.at, command.at)
        due = at + timedelta(seconds=command.delay)
        return (Released(at, command.token, command.reason, due, command.note),)

    return patch.object(finish, "release", release)
