"""Whether there was somebody to start a job: step functions of none, unhandled, busy and free.

There is one for each queue and for each set of names that the same workers have handlers for; that
is one set when all workers run the same code.  They are built in one sweep over the lives of
workers and their runs, and keep running sums, so that a wait through a million changes is explained
in the time of two look-ups.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from heapq import merge
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from .clock import micros
from .facts import Facts, WorkerFacts
from .stints import Stints

#: Moment, what changed, worker, queue (of a run or limit), and by or to how much.
Change: TypeAlias = tuple[int, int, str, str, int]
#: A queue, and which of the sets of names.
Pool: TypeAlias = tuple[str, int]


class Room(IntEnum):
    """What a job finds at one moment, in words of its queue and name.

    No worker of the queue, none of them with a handler of the name, no free slot with those that
    have one, a free slot.
    """

    NONE = 0
    UNHANDLED = 1
    BUSY = 2
    FREE = 3


class Split(NamedTuple):
    """How many microseconds of a stretch found which room."""

    none: int
    unhandled: int
    busy: int
    free: int


class _Steps:
    """The rooms of one pool over time, with sums of the time spent in each but the last of them."""

    def __init__(self) -> None:
        self.times = array("q")
        self.rooms = bytearray()
        self.spent = tuple(array("q") for room in Room if room is not Room.FREE)

    def add(self, at: int, room: Room) -> None:
        """From ``at`` on it is ``room``; calls come in order of time."""
        last = Room(self.rooms[-1]) if self.rooms else Room.NONE
        if room is last and self.rooms:
            return
        passed = at - self.times[-1] if self.times else 0
        for number, spent in enumerate(self.spent):
            spent.append((spent[-1] if spent else 0) + passed * (number == last))
        self.times.append(at)
        self.rooms.append(room)

    def sums(self, at: int) -> tuple[int, ...]:
        """Time spent in each room up to ``at``, from a zero of its own."""
        index = bisect_right(self.times, at) - 1
        if index < 0:
            since = self.times[0] if self.times else 0
            return tuple((at - since) * (number == Room.NONE) for number in range(len(self.spent)))
        passed, room = at - self.times[index], self.rooms[index]
        return tuple(
            spent[index] + passed * (number == room) for number, spent in enumerate(self.spent)
        )


class Capacity:
    """What every job found at every moment, by what the audit log and the runs tell."""

    def __init__(self, facts: Facts, stints: Stints) -> None:
        self._handlers = _Handlers(facts.workers)
        self._steps: dict[Pool, _Steps] = {}
        sweep = _Sweep(facts, self._handlers)
        # What changes at one moment may come in any order: nothing lasts between.
        streams = (_lives(facts), _limits(facts), _beginnings(stints), _ends(stints))
        changes = merge(*streams, key=itemgetter(0))
        for at, change, worker, queue_of_run, number in changes:
            for pool in sweep.apply(change, worker, queue_of_run, number):
                self._steps.setdefault(pool, _Steps()).add(at, sweep.room(pool))

    def split(self, queue: str, name: str, since: int, until: int) -> Split:
        """What a job of ``queue`` found between two moments; the parts sum to the whole."""
        steps = self._steps.get((queue, self._handlers.of(name)))
        if steps is None:
            return Split(until - since, 0, 0, 0)
        before, after = steps.sums(since), steps.sums(until)
        none, unhandled, busy = (late - early for early, late in zip(before, after, strict=True))
        return Split(none, unhandled, busy, until - since - none - unhandled - busy)


class _Handlers:
    """The sets of names that the same workers have handlers for, by number."""

    def __init__(self, workers: Mapping[str, WorkerFacts]) -> None:
        told = (worker.names for worker in workers.values() if worker.names is not None)
        self._numbers: dict[str, int] = {}
        known: dict[frozenset[str], int] = {}
        # The last stands for every name that no worker has told.
        for name in (*sorted(frozenset[str]().union(*told)), None):
            able = frozenset(
                worker.id
                for worker in workers.values()
                if worker.names is None or name in worker.names
            )
            number = known.setdefault(able, len(known))
            if name is not None:
                self._numbers[name] = number
            else:
                self._others = number
        self.able = tuple(known)

    def of(self, name: str) -> int:
        """The number of the set that has ``name``."""
        return self._numbers.get(name, self._others)

    def pools(self, worker: WorkerFacts) -> tuple[Pool, ...]:
        """The pools that a worker takes jobs from."""
        numbers = [number for number, able in enumerate(self.able) if worker.id in able]
        return tuple((queue, number) for queue in worker.queues for number in numbers)

    def everyone(self, queue: str) -> tuple[Pool, ...]:
        """All pools of a queue."""
        return tuple((queue, number) for number in range(len(self.able)))


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

    ``serving`` counts the living workers of a queue, ``handling`` those of a pool, and ``full``
    those of them without a free slot.
    """

    def __init__(self, facts: Facts, handlers: _Handlers) -> None:
        self.workers = facts.workers
        self.pools = {each.id: handlers.pools(each) for each in facts.workers.values()}
        self.everyone = handlers.everyone
        self.living: set[str] = set()
        self.taken: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.serving: Counter[str] = Counter()
        self.handling: Counter[Pool] = Counter()
        self.full: Counter[Pool] = Counter()
        self.limit: dict[str, int] = {}

    def apply(self, change: int, worker: str, queue: str, number: int) -> Iterable[Pool]:
        """Let one change happen; the pools that may find another room since."""
        if change == LIMITED:
            self.limit[queue] = number
            return self.everyone(queue)
        if change == RUN:
            self.running[queue] += number
            was_full = self._is_full(worker)
            self.taken[worker] += number
            filled = self._filled(worker, was_full)
            return (*self.everyone(queue), *filled) if queue in self.limit else filled
        if change == STARTED:
            self.living.add(worker)
        else:
            self.living.discard(worker)
        full = self._is_full(worker)
        for pool in self.pools[worker]:
            self.handling[pool] += number
            self.full[pool] += number * full
        queues = self.workers[worker].queues
        self.serving.update(dict.fromkeys(queues, number))
        return [pool for served in queues for pool in self.everyone(served)]

    def room(self, pool: Pool) -> Room:
        """What a job of ``pool`` finds now."""
        queue, _ = pool
        if self.serving[queue] <= 0:
            return Room.NONE
        if self.handling[pool] <= 0:
            return Room.UNHANDLED
        limit = self.limit.get(queue, -1)
        if self.full[pool] >= self.handling[pool] or 0 <= limit <= self.running[queue]:
            return Room.BUSY
        return Room.FREE

    def _is_full(self, worker: str) -> bool:
        facts = self.workers.get(worker)
        return facts is not None and self.taken[worker] >= facts.capacity

    def _filled(self, worker: str, was_full: bool) -> Iterable[Pool]:
        """Count a living worker that has become full, or is not any more."""
        now = self._is_full(worker)
        if now == was_full or worker not in self.living:
            return ()
        pools = self.pools[worker]
        for pool in pools:
            self.full[pool] += 1 if now else -1
        return pools
