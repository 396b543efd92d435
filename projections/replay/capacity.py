"""Whether there was somebody to start a job: for each queue a step function of none, busy, free.

It is built in one sweep over the lives of workers and their runs; every queue keeps running sums,
so that a wait through a million changes is explained in the time of two look-ups.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from heapq import merge
from typing import NamedTuple, TypeAlias

from .clock import micros
from .facts import Facts

#: Moment, what changed, worker, queue (of a run or limit), and by or to how much.
Change: TypeAlias = tuple[int, int, str, str, int]


class Room(IntEnum):
    """What a queue finds at one moment: no worker, workers without a free slot, a free slot."""

    NONE = 0
    BUSY = 1
    FREE = 2


class Stint(NamedTuple):
    """A run as capacity sees it, in microseconds since 1970; ``until`` is None while it goes on."""

    since: int
    worker: str
    queue: str
    until: int | None


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

    def __init__(self, facts: Facts, stints: Iterable[Stint]) -> None:
        self.queues_of = {worker.id: worker.queues for worker in facts.workers.values()}
        self._steps: dict[str, _Steps] = {}
        sweep = _Sweep(facts)
        runs = sorted(stints, key=_since)
        changes = merge(
            sorted(_lives(facts)), sorted(_limits(facts)), _beginnings(runs), _ends(runs)
        )
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


# Changes at one moment apply in this order.
STARTED, RAN, BEGAN, ENDED, LIMITED = range(5)


def _lives(facts: Facts) -> Iterator[Change]:
    for worker in facts.workers.values():
        yield micros(worker.started), STARTED, worker.id, "", worker.capacity
        if worker.ended is not None:
            yield micros(worker.ended), ENDED, worker.id, "", 0


def _limits(facts: Facts) -> Iterator[Change]:
    for queue, changes in facts.limits.items():
        for at, limit in changes:
            yield micros(at), LIMITED, "", queue, -1 if limit is None else limit


def _since(stint: Stint) -> int:
    return stint.since


def _beginnings(stints: Sequence[Stint]) -> Iterator[Change]:
    for stint in stints:
        yield stint.since, BEGAN, stint.worker, stint.queue, 1


def _ends(stints: Sequence[Stint]) -> Iterator[Change]:
    # Not all changes at once: a million runs would need as much memory again.
    ended = [stint for stint in stints if stint.until is not None]
    ended.sort(key=_end)
    for stint in ended:
        yield *_end(stint), stint.worker, stint.queue, -1


def _end(stint: Stint) -> tuple[int, int]:
    """When a run ends; one of no length must not end before it begins."""
    until = stint.since if stint.until is None else stint.until
    return until, RAN if until > stint.since else ENDED


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
        if queue:
            self.running[queue] += number
            was_full = self._is_full(worker)
            self.taken[worker] += number
            return (queue, *self._filled(worker, was_full))
        facts = self.workers[worker]
        if change == STARTED:
            self.living.add(worker)
        else:
            self.living.discard(worker)
        step = 1 if change == STARTED else -1
        for served in facts.queues:
            self.serving[served] += step
            self.full[served] += step * self._is_full(worker)
        return facts.queues

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
