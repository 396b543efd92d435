"""Receipts of what a handler does outside: begun, done, or certainly not happened."""

from __future__ import annotations

from ..commands import CompleteEffect, ReleaseEffect, StartEffect
from ..errors import EffectRefused, EffectUncertain
from ..events import EffectCompleted, EffectReleased, EffectStarted, Event
from ..job import Effect, Job
from ..limits import EFFECTS_MAX, check_effect_key, check_text
from ..values import EffectKind
from .guard import holder, moment

DESTINATION_BYTES_MAX = 512


def start(job: Job | None, command: StartEffect) -> tuple[Event, ...]:
    """Begin an effect.  Nothing happens when it is done already: its receipt is in the job.

    Raises EffectUncertain for one that was begun before, EffectRefused for a key that stands for
    another destination or kind.
    """
    job, _ = holder(job, "begin an effect of", command.token)
    known = _known(job, command)
    if known is not None:
        if known.receipt is None:
            raise EffectUncertain(job.id, command.key, known.destination)
        return ()
    if len(job.effects) >= EFFECTS_MAX:
        seen = f"the job has {EFFECTS_MAX:,} effects"
        raise EffectRefused(job.id, command.key, seen, "Split the work into several jobs")
    at = moment(job, command.at)
    return (EffectStarted(at, command.token, command.key, command.destination, command.effect),)


def complete(job: Job | None, command: CompleteEffect) -> tuple[Event, ...]:
    """Keep the receipt.  Nothing happens when there is one: the first is the one that counts.

    Raises EffectRefused for a call that was not begun, and for another destination or kind.
    """
    job, _ = holder(job, "complete an effect of", command.token)
    known = _known(job, command)
    if known is None and command.effect is EffectKind.CALL:
        raise EffectRefused(job.id, command.key, "it was not begun", "Begin it before it is done")
    if known is not None and known.receipt is not None:
        return ()
    done = EffectCompleted(
        moment(job, command.at),
        command.token,
        command.key,
        command.destination,
        command.effect,
        command.receipt,
    )
    return (done,)


def release(job: Job | None, command: ReleaseEffect) -> tuple[Event, ...]:
    """Take back an effect that was begun.  Raises EffectRefused when there is none in progress."""
    job, _ = holder(job, "release an effect of", command.token)
    known = next((each for each in job.effects if each.key == command.key), None)
    if known is None or known.receipt is not None:
        seen = "it was not begun" if known is None else "it is done"
        raise EffectRefused(job.id, command.key, seen, "Only one in progress can be released")
    return (EffectReleased(moment(job, command.at), command.token, command.key, command.reason),)


def _known(job: Job, command: StartEffect | CompleteEffect) -> Effect | None:
    """The effect that the job has under this key, which must be the same one."""
    check_effect_key(command.key)
    check_text("destination", command.destination, DESTINATION_BYTES_MAX)
    known = next((each for each in job.effects if each.key == command.key), None)
    if known is None:
        return None
    if (known.destination, known.kind) != (command.destination, command.effect):
        seen = f"it is a {known.kind} to {known.destination[:60]!r}"
        raise EffectRefused(job.id, command.key, seen, "Give each effect a key of its own")
    return known
