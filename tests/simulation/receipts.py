"""Effects as the outside knows them, held against what the log says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from leasebook.domain.events import EffectCompleted, EffectStarted

from .outside import Call

if TYPE_CHECKING:
    from .judge import Runs, Streams
    from .world import World


def effects_are_made_once(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """No call is made again but after the outside has certainly refused it."""
    last: dict[tuple[UUID, str], Call] = {}
    for call in world.script.outside.calls:
        before = last.get((call.job_id, call.key))
        if before is not None and before.ending != "refused":
            yield f"job {call.job_id}: effect {call.key} was made again, it was {before.ending}"
        last[call.job_id, call.key] = call


def effects_are_on_record(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """No call is made before its begin is committed, and receipts tell of calls that were made."""
    outside = world.script.outside
    for call in outside.calls:
        begun = [
            world.server.times[each.xid]
            for each in streams.get(call.job_id, [])
            if isinstance(each.event, EffectStarted)
            and (each.event.lease, each.event.key) == (call.token, call.key)
        ]
        if not begun or min(begun) > call.began:
            yield f"job {call.job_id}: effect {call.key} was made before it was begun"
    made = [each for each in outside.calls if each.ending == "done"]
    done = {(each.job_id, each.key): str(each.number) for each in made}
    for job_id, stream in streams.items():
        for each in stream:
            event = each.event
            if not isinstance(event, EffectCompleted):
                continue
            if event.receipt != done.get((job_id, event.key)):
                yield f"job {job_id}: effect {event.key} has a receipt of no call"
    for job_id, key, receipt in outside.told:
        if str(receipt) != done.get((job_id, key)):
            yield f"job {job_id}: effect {key} was said to be done, with another receipt"
