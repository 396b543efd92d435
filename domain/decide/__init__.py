"""The only place that says no.

``decide(job, command)`` answers what happens, as events, or raises a typed error; ``change`` adds
the job that comes of it.  Both are pure: time, tokens and outcomes arrive inside the command.
"""

from __future__ import annotations

from typing import assert_never

from ..commands import (
    CloseGroup,
    Command,
    Complete,
    CompleteEffect,
    Enqueue,
    ExpireLease,
    Fail,
    JoinItems,
    OpenGroup,
    Release,
    ReleaseEffect,
    Renew,
    Reschedule,
    StartEffect,
    TakeLease,
    Unblock,
)
from ..events import Event
from ..evolve import evolve
from ..job import Job
from ..log import Change
from . import birth, effects, finish, lease, moving, waiting

__all__ = ["change", "decide"]


def decide(job: Job | None, command: Command) -> tuple[Event, ...]:
    """The events that ``command`` makes of ``job`` (None: it is not there yet).

    Raises IllegalTransition when the state has no such move, StaleLease when a worker's token is
    not the job's, NotDue when it is too early, GroupRefused when a group cannot take the items,
    EffectRefused and EffectUncertain for effects, and InvalidValue for a command that contradicts
    itself.
    """
    # What a busy worker asks most comes first: each case that does not match costs a little.
    match command:
        case TakeLease():
            return lease.take(job, command)
        case Complete():
            return finish.complete(job, command)
        case Enqueue():
            return birth.enqueue(job, command)
        case OpenGroup():
            return birth.open_group(job, command)
        case JoinItems():
            return birth.join_items(job, command)
        case CloseGroup():
            return birth.close_group(job, command)
        case Reschedule():
            return moving.reschedule(job, command)
        case Unblock():
            return waiting.unblock(job, command)
        case Renew():
            return lease.renew(job, command)
        case ExpireLease():
            return lease.expire(job, command)
        case Fail():
            return finish.fail(job, command)
        case Release():
            return finish.release(job, command)
        case StartEffect():
            return effects.start(job, command)
        case CompleteEffect():
            return effects.complete(job, command)
        case ReleaseEffect():
            return effects.release(job, command)
    assert_never(command)


def change(job: Job | None, command: Command) -> Change:
    """``decide`` and ``evolve`` in one: what to append and the job that comes of it."""
    events = decide(job, command)
    after = job
    for event in events:
        after = evolve(after, event)
    assert after is not None
    return Change(job, events, after)
