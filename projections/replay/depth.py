"""How many jobs stood where over time: exact step functions by queue and standing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TypeAlias

from attrs import frozen

from ...domain.log import Recorded
from ..streams import Step, by_job, steps
from .at import is_open, standing
from .clock import micros, moment

#: A queue and where a job stands in it: a state, or ``held``.
Place: TypeAlias = tuple[str, str]

#: The standings in the order in which a job goes through them.
STANDINGS = ("grouped", "queued", "leased", "retry-wait", "held")


@frozen
class DepthOverTime:
    """Counts of open jobs, unfinished or held, between ``since`` and ``until``.

    ``counts`` has for each place one number for each of ``times``, which holds until the next time.
    ``merged``: there were more changes than points asked for, so that each number is the highest of
    its stretch.
    """

    since: datetime
    until: datetime
    times: tuple[datetime, ...]
    counts: Mapping[Place, tuple[int, ...]]
    merged: bool

    def total(self, queue: str | None = None) -> tuple[int, ...]:
        """The sum over all places, or those of one queue: an upper bound where merged."""
        chosen = [numbers for (name, _), numbers in self.counts.items() if queue in (None, name)]
        return tuple(map(sum, zip(*chosen, strict=True))) if chosen else (0,) * len(self.times)


def depth_over_time(
    log: Iterable[Recorded], since: datetime, until: datetime, points: int, *, trim: bool = False
) -> DepthOverTime:
    """The depth between two moments in at most ``points`` points, which is at least 1.

    ``trim`` leaves out the time before the first job was open and after the last one was.  Raises
    ValueError for no points, or a window that ends before it begins.
    """
    if points < 1 or until < since:
        raise ValueError("a depth needs a point, and a window that does not end before it begins")
    changes = _changes(log, micros(until))
    begin, end = micros(since), micros(until)
    if trim:
        begin, end = _trimmed(changes, begin, end)
    within = {at for deltas in changes.values() for at in deltas if begin < at}
    merged = len(within) + 1 > points
    if merged:
        ticks = [begin + (end - begin) * index // points for index in range(points)]
    else:
        ticks = [begin, *sorted(within)]
    counts = {place: _levels(changes[place], ticks) for place in sorted(changes, key=_order)}
    seen = {place: levels for place, levels in counts.items() if any(levels)}
    return DepthOverTime(moment(begin), moment(end), tuple(map(moment, ticks)), seen, merged)


def _order(place: Place) -> tuple[str, int]:
    return place[0], STANDINGS.index(place[1])


class _Deltas(dict[int, int]):
    """By moment, by how much a count changed then."""

    def add(self, at: int, step: int) -> None:
        self[at] = self.get(at, 0) + step


def _changes(log: Iterable[Recorded], until: int) -> dict[Place, _Deltas]:
    changes: dict[Place, _Deltas] = {}
    for stream in by_job(log):
        place: Place | None = None
        for step in steps(stream):
            at = micros(step.recorded.at)
            if at > until:
                break
            now = _place(step)
            if now == place:
                continue
            if place is not None:
                changes[place].add(at, -1)
            if now is not None:
                changes.setdefault(now, _Deltas()).add(at, 1)
            place = now
    return changes


def _trimmed(changes: Mapping[Place, _Deltas], begin: int, end: int) -> tuple[int, int]:
    """The window without its empty ends; as it is when it is empty altogether."""
    times = sorted({at for deltas in changes.values() for at in deltas})
    within = [at for at in times if begin < at]
    if not within:
        return begin, end
    before = sum(step for deltas in changes.values() for at, step in deltas.items() if at <= begin)
    after = sum(step for deltas in changes.values() for step in deltas.values())
    return (begin if before else within[0]), (end if after else within[-1])


def _place(step: Step) -> Place | None:
    job = step.after
    return (job.spec.queue, standing(job)) if is_open(job) else None


def _levels(deltas: Mapping[int, int], ticks: Sequence[int]) -> tuple[int, ...]:
    """The highest count between each tick and the next."""
    times = array("q", sorted(deltas))
    sums = array("q", accumulate(deltas[at] for at in times))
    levels: list[int] = []
    index, level = 0, 0
    for number, tick in enumerate(ticks):
        while index < len(times) and times[index] <= tick:
            level = sums[index]
            index += 1
        highest = level
        end = ticks[number + 1] if number + 1 < len(ticks) else None
        while index < len(times) and (end is None or times[index] < end):
            level = sums[index]
            highest = max(highest, level)
            index += 1
        levels.append(highest)
    return tuple(levels)
