"""Broken receipts: effects that begin too early, twice, or under somebody else's lease."""

# A planted bug gets at what no honest code may touch.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from concurrent.futures import Future
from unittest.mock import patch

from attrs import evolve as replace

from leasebook.domain import Job, change
from leasebook.domain.commands import StartEffect
from leasebook.domain.decide import effects, finish, lease
from leasebook.domain.errors import EffectUncertain
from leasebook.domain.events import EffectReleased, EffectStarted, Event
from leasebook.infra.worker.answers import Entry, Write
from leasebook.infra.worker.loop import TickLoop

from .rules import Planted, always, anybody, both


def begun_before_the_commit() -> Planted:
    """The handler goes on as soon as the tick thread has its begin in hand."""
    note = TickLoop._note

    def _note(self: TickLoop, entry: Entry) -> None:
        if isinstance(entry, Write) and isinstance(entry.command, StartEffect):
            asked = change(entry.job, replace(entry.command, at=entry.job.at))
            if entry.reply.set_running_or_notify_cancel():
                entry.reply.set_result(asked.after)
            entry = Write(entry.job, entry.command, Future())
        note(self, entry)

    return patch.object(TickLoop, "_note", _note)


def uncertain_is_released_on_retry() -> Planted:
    """A run that was interrupted in the middle of an effect is followed by another, which begins it
    anew.
    """
    start = effects.start

    def careless(job: Job | None, command: StartEffect) -> tuple[Event, ...]:
        try:
            return start(job, command)
        except EffectUncertain:
            at, token, key = command.at, command.token, command.key
            released = EffectReleased(at, token, key, "it is a retry")
            return (released, EffectStarted(at, token, key, command.destination, command.effect))

    return both(
        patch.object(finish, "uncertain", always(None)),
        patch.object(lease, "uncertain", always(None)),
        patch.object(effects, "start", careless),
    )


def effects_without_fencing() -> Planted:
    """A receipt counts as long as anybody holds a lease of the job."""
    return patch.object(effects, "holder", anybody)
