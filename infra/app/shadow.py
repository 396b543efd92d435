"""Making the claim table anew beside the one in use, and letting it take its place.

Whoever appends pays nothing for it: what happened meanwhile is found in the log.  Only the last of
that is caught up with while nobody is at the table.  No handler runs because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import sleep

from attrs import frozen

from ...projections.claim import KeptRow, expected
from ...projections.streams import steps
from ..ports import DataRefused
from ..rebuild_ports import GateBusy, GateShut, Part, RebuildRefused, ShadowTable
from .rebuild import Progress

#: Pauses between the tries for the gate: doubling, three and a half minutes in all.
PAUSE_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4)
#: So many events are caught up with behind the closed gate.
EVENTS_LEFT = 500

#: Told after a try for the gate that failed: why, and the seconds until the next.
Tried = Callable[[str, float], None]


@frozen
class Rebuilt:
    """A swap: so many events were read, and the gate, had in so many tries, was held so long."""

    events: int
    tries: int
    gate_seconds: float


def rebuild(
    shadow: ShadowTable, progress: Progress | None = None, tried: Tried | None = None
) -> Rebuilt:
    """Make the claim table anew from the log and swap it in, while workers and producers go on.

    Broken off at any point, it goes on where it was.  Raises RebuildRefused for a table that others
    depend on and a log of which no table can be made, RebuildElsewhere, NotALiveLog, GateShut.
    """
    total, place = shadow.events(), shadow.begin()
    events, copied = place.events, place.copied

    def told(more: int) -> None:
        nonlocal events
        events += more
        if progress is not None:
            progress(events, max(total, events))

    while not copied:
        with shadow.copying() as part:
            _apply(part)
        told(part.events)
        copied = part.last
    _catch_up(shadow, told)
    for tries, pause in enumerate((*PAUSE_SECONDS, None), 1):
        _complete(shadow)
        _catch_up(shadow, told)
        try:
            with shadow.gate() as part:
                _apply(part)
        except GateBusy as busy:
            if pause is None:
                raise GateShut(tries, busy.why) from None
            if tried is not None:
                tried(busy.why, pause)
            sleep(pause)
        else:
            told(part.events)
            return Rebuilt(events, tries, shadow.gate_seconds())
    raise AssertionError("the last try has no pause")


def _catch_up(shadow: ShadowTable, told: Callable[[int], None]) -> None:
    """Follow the log until there is little left of it."""
    while True:
        with shadow.following() as part:
            _apply(part)
        told(part.events)
        if part.events <= EVENTS_LEFT:
            return


def _complete(shadow: ShadowTable) -> None:
    try:
        shadow.complete()
    except DataRefused as error:
        raise _contradiction(error) from error


def _apply(part: Part) -> None:
    for streams in part.pieces():
        rows: list[KeptRow] = []
        for stream in streams:
            life = steps(stream)
            if not life:
                raise RebuildRefused(
                    [f"the stream of job {stream[0].job_id} does not begin with its birth"],
                    "Its row cannot be made from the log; `projection repair` mends the others.",
                )
            row = expected(life)
            if row is not None:
                rows.append(row)
        _write(part, rows)


def _write(part: Part, rows: Sequence[KeptRow]) -> None:
    try:
        part.write(rows)
    except DataRefused as error:
        raise _contradiction(error) from error


def _contradiction(error: DataRefused) -> RebuildRefused:
    return RebuildRefused(
        [f"by the log two rows contradict each other: {error}"],
        "`leasebook check` tells which; `projection repair` mends the others.",
    )
