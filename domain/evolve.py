"""What an event makes of a job.  Nothing here refuses: the log has already happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from attrs import evolve as replace

from .events import (
    Blocked,
    Completed,
    EffectCompleted,
    EffectReleased,
    EffectStarted,
    Enqueued,
    Event,
    Failed,
    GroupClosed,
    Heartbeat,
    ItemsJoined,
    Leased,
    LeaseExpired,
    Released,
    Rescheduled,
    RetryScheduled,
    Unblocked,
)
from .job import Effect, Job, Lease
from .states import State


def born(event: Enqueued) -> Job:
    """The first version of a job."""
    spec = event.spec
    state = State.QUEUED if spec.group is None else State.GROUPED
    return Job(spec, state, 1, event.at, event.due_at, blocked_by=event.blocked_by)


def evolve(job: Job | None, event: Event) -> Job:
    """The job after ``event``.  Builds the small state directly: this is the hot path."""
    if job is None:
        assert isinstance(event, Enqueued), f"a stream begins with enqueued, not {event.kind}"
        return born(event)
    spec, version, at = job.spec, job.version + 1, event.at
    starts, attempts, interruptions = job.starts, job.attempts, job.interruptions
    match event:
        case Leased():
            lease = Lease(version, event.worker, at)
            until = event.lease_until
            return Job(
                spec, State.LEASED, version, at, until,
                event.start, attempts, interruptions, lease, job.items, job.effects,
            )  # fmt: skip
        case Completed():
            return Job(
                spec, State.DONE, version, at, at,
                starts, attempts, interruptions, None, job.items, job.effects, event.outcome,
            )  # fmt: skip
        case Heartbeat():
            until = event.lease_until
            return Job(
                spec, State.LEASED, version, at, until,
                starts, attempts, interruptions, job.lease, job.items, job.effects,
            )  # fmt: skip
        case Released():
            return Job(
                spec, State.QUEUED, version, at, event.due_at,
                starts, attempts, interruptions, None, job.items, job.effects,
            )  # fmt: skip
        case RetryScheduled():
            return Job(
                spec, State.RETRY_WAIT, version, at, event.due_at,
                starts, attempts + 1, interruptions, None, job.items, job.effects,
            )  # fmt: skip
        case LeaseExpired():
            return Job(
                spec, State.QUEUED, version, at, event.due_at,
                starts, attempts + 1, interruptions + 1, None, job.items, job.effects,
            )  # fmt: skip
        case ItemsJoined():
            items = job.items + event.items
            return Job(spec, State.GROUPED, version, at, event.due_at, items=items)
        case GroupClosed():
            return Job(spec, State.QUEUED, version, at, event.due_at, items=job.items)
        case Failed():
            spent = 0 if event.lease is None else 1
            return Job(
                spec, State.FAILED, version, at, at,
                starts, attempts + spent, interruptions, None, job.items, job.effects,
                event.outcome, event.held,
            )  # fmt: skip
        case Rescheduled():
            return replace(job, version=version, at=at, due_at=event.due_at)
        case Blocked():
            return replace(job, version=version, at=at, blocked_by=event.by)
        case Unblocked():
            return _unblocked(job, event)
        case EffectStarted() | EffectCompleted() | EffectReleased():
            return replace(job, version=version, at=at, effects=_effects(job.effects, event))
        case Enqueued():
            return born(event)
    assert_never(event)


def _unblocked(job: Job, event: Unblocked) -> Job:
    """A job that had failed because of the one it comes after waits as if it had not."""
    state = State.QUEUED if job.state is State.FAILED else job.state
    return replace(
        job, version=job.version + 1, at=event.at, due_at=event.due_at,
        state=state, outcome=None, held=False, blocked_by=None,
    )  # fmt: skip


def _effects(
    effects: tuple[Effect, ...], event: EffectStarted | EffectCompleted | EffectReleased
) -> tuple[Effect, ...]:
    """The effects after one was begun, done or released; the order is that of their beginnings."""
    match event:
        case EffectStarted():
            return (*effects, Effect(event.key, event.destination, event.effect))
        case EffectReleased():
            return tuple(each for each in effects if each.key != event.key)
        case EffectCompleted():
            done = Effect(event.key, event.destination, event.effect, event.receipt)
            if all(each.key != event.key for each in effects):
                return (*effects, done)
            return tuple(done if each.key == event.key else each for each in effects)
    assert_never(event)


def fold(events: Iterable[Event]) -> Job | None:
    """The job that a stream tells of, None for an empty stream."""
    job: Job | None = None
    for event in events:
        job = evolve(job, event)
    return job
