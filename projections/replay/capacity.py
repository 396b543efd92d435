"""Whether there was somebody to start a job: for each queue a step function of none, busy, free.

It is built in one sweep over the lives of workers and their runs; every queue keeps running sums,
so that a wait through a million changes is explained in the time of two look-ups.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum
from heapq import merge
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from .clock import micros
from .facts import Facts
from .stints import Stints

#: Moment, what changed, worker, queue (of a run or limit), and by or to how much.
Change: TypeAlias = tuple[int, int, str, str, int]


class Room(IntEnum):
    """What a queue finds at one moment: no worker, workers without a free slot, a free slot."""

    NONE = 0
    BUSY = 1
    FREE = 2


class Split(NamedTuple):
    """How many microseconds of a stretch found which room."""

    none: int
    busy: int
    free: int


class _Steps:
    """The rooms of one queue over time, with sums of the time spent without a worker and busy."""

    def __init__(self) -> None:
        self.times = array("q")
        self.rooms = bytearray()
        self.none = array("q")
        self.busy = array("q")

    def add(self, at: int, room: Room) -> None:
        """From ``at`` on it is ``room``; calls come in order of time."""
        last = Room(self.rooms[-1]) if self.rooms else Room.NONE
        if room is last and self.rooms:
            return
        passed = at - self.times[-1] if self.times else 0
        self.none.append((self.none[-1] if self.none else 0) + passed * (last is Room.NONE))
        self.busy.append((self.busy[-1] if self.busy else 0) + passed * (last is Room.BUSY))
        self.times.append(at)
        self.rooms.append(room)

    def sums(self, at: int) -> tuple[int, int]:
        """Time without a worker and busy time up to ``at``, from a zero of its own."""
        if not self.times:
            return at, 0
        index = bisect_right(self.times, at) - 1
        if index < 0:
            return at - self.times[0], 0
        passed, room = at - self.times[index], self.rooms[index]
        none = self.none[index] + passed * (room == Room.NONE)
        return none, self.busy[index] + passed * (room == Room.BUSY)


class Capacity:
    """What every queue found at every moment, by what the audit log and the runs tell."""

    def __init__(self, facts: Facts, stints: Stints) -> None:
        self.queues_of = {worker.id: worker.queues for worker in facts.workers.values()}
        self._steps: dict[str, _Steps] = {}
        sweep = _Sweep(facts)
        # What changes at one moment may come in any order: nothing lasts between.
        streams = (_lives(facts), _limits(facts), _beginnings(stints), _ends(stints))
        changes = merge(*streams, key=itemgetter(0))
        for at, change, worker, queue_of_run, number in changes:
            for queue in sweep.apply(change, worker, queue_of_run, number):
                self._steps.setdefault(queue, _Steps()).add(at, sweep.room(queue))

    def split(self, queue: str, since: int, until: int) -> Split:
        """What a job of ``queue`` found between two moments; the parts sum to the whole."""
        steps = self._steps.get(queue)
        if steps is None:
            return Split(until - since, 0, 0)
        (none_before, busy_before), (none, busy) = steps.sums(since), steps.sums(until)
        parts = none - none_before, busy - busy_before
        return Split(*parts, until - since - sum(parts))


STARTED, STOPPED, RUN, LIMITED = range(4)


def _lives(facts: Facts) -> Iterator[Change]:
    changes: list[Change] = []
    for worker in facts.workers.values():
        changes.append((micros(worker.started), STARTED, worker.id, "", 1))
        if worker.ended is not None:
            changes.append((micros(worker.ended), STOPPED, worker.id, "", -1))
    yield from sorted(changes)


def _limits(facts: Facts) -> Iterator[Change]:
    changes: list[Change] = []
    for queue, limits in facts.limits.items():
        for at, limit in limits:
            changes.append((micros(at), LIMITED, "", queue, -1 if limit is None else limit))
    # Of two limits of one moment the later counts.
    changes.sort(key=itemgetter(0))
    yield from changes


def _beginnings(stints: Stints) -> Iterator[Change]:
    for stint in stints.by_beginning():
        yield stint.since, RUN, stint.worker, stint.queue, 1


def _ends(stints: Stints) -> Iterator[Change]:
    for stint in stints.by_end():
        yield stint.until, RUN, stint.worker, stint.queue, -1


class _Sweep:
    """The living workers and their runs at one moment of the sweep.

    ``serving`` counts the living workers of a queue, ``full`` those of them without a free slot.
    """

    def __init__(self, facts: Facts) -> None:
        self.workers = facts.workers
        self.living: set[str] = set()
        self.taken: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.serving: Counter[str] = Counter()
        self.full: Counter[str] = Counter()
        self.limit: dict[str, int] = {}

    def apply(self, change: int, worker: str, queue: str, number: int) -> Iterable[str]:
        """Let one change happen; the queues that may find another room since."""
        if change == LIMITED:
            self.limit[queue] = number
            return (queue,)
        if change == RUN:
            self.running[queue] += number
            was_full = self._is_full(worker)
            self.taken[worker] += number
            return (queue, *self._filled(worker, was_full))
        if change == STARTED:
            self.living.add(worker)
        else:
            self.living.discard(worker)
        queues = self.workers[worker].queues
        for served in queues:
            self.serving[served] += number
            self.full[served] += number * self._is_full(worker)
        return queues

    def room(self, queue: str) -> Room:
        """What a job of ``queue`` finds now."""
        if self.serving[queue] <= 0:
            return Room.NONE
        limit = self.limit.get(queue, -1)
        if self.full[queue] >= self.serving[queue] or 0 <= limit <= self.running[queue]:
            return Room.BUSY
        return Room.FREE

    def _is_full(self, worker: str) -> bool:
        facts = self.workers.get(worker)
        return facts is not None and self.taken[worker] >= facts.capacity

    def _filled(self, worker: str, was_full: bool) -> Iterable[str]:
        """Count a living worker that has become full, or is not any more."""
        now = self._is_full(worker)
        if now == was_full or worker not in self.living:
            return ()
        queues = self.workers[worker].queues
        for queue in queues:
            self.full[queue] += 1 if now else -1
        return queues
