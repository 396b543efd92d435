"""The workers of a simulated world, and for how long each kind of job has found a free slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from uuid import UUID

from attrs import define, field

from ..replay.clock import micros
from ..replay.facts import Facts, WorkerFacts
from .policy import Policy


@define(order=True)
class Ready:
    """A job in claim order.  One whose ``ticket`` is no longer the job's is of no concern."""

    priority: int
    due_at: int
    seq: int
    job_id: UUID = field(order=False)
    ticket: int = field(order=False)


@define
class Pool:
    """The jobs of one queue and name that are due.

    ``passed`` is for how long there has been a free slot for them, in microseconds.  A job may be
    leased once that has grown by what dispatch took for it when it was recorded.  ``free`` holds
    for one ``version`` of the fleet.
    """

    queue: str
    name: str
    passed: int = 0
    free: bool = False
    waiting: list[tuple[int, int, Ready]] = field(factory=list[tuple[int, int, Ready]])
    ready: list[Ready] = field(factory=list[Ready])
    version: int = -1
    _number: int = 0

    def add(self, ready: Ready, noise: int) -> None:
        """A job is due, and will take ``noise`` beside a free slot."""
        self._number += 1
        heappush(self.waiting, (self.passed + noise, self._number, ready))

    def advance(self, microseconds: int) -> None:
        """So much time went by."""
        if self.free:
            self.passed += microseconds

    def let_in(self) -> None:
        """Those whose time has come may be leased."""
        while self.waiting and self.waiting[0][0] <= self.passed:
            heappush(self.ready, heappop(self.waiting)[2])

    @property
    def next(self) -> int | None:
        """In how many microseconds somebody may be leased if nothing changes; None: never."""
        return self.waiting[0][0] - self.passed if self.free and self.waiting else None


class Fleet:
    """Workers with their slots, pauses and limits, at one moment; every change has its version."""

    def __init__(self, facts: Facts, policy: Policy) -> None:
        self._facts, self._policy = facts, policy
        self._living: dict[str, WorkerFacts] = {}
        self._taken: Counter[str] = Counter()
        self._running: Counter[tuple[str, str]] = Counter()
        self._paused: set[str] = set()
        self._limits: dict[str, int | None] = {}
        self.version = 0

    def changes(self) -> Iterator[tuple[int, str, str, int | None]]:
        """What happens to the fleet: moment, what, whom, and to how much."""
        for worker in self._facts.workers.values():
            yield micros(worker.started), "start", worker.id, None
            if worker.ended is not None:
                yield micros(worker.ended), "end", worker.id, None
        for queue, pauses in self._facts.paused.items():
            for began, ended in pauses:
                yield micros(began), "pause", queue, None
                if ended is not None:
                    yield micros(ended), "resume", queue, None
        for queue, limits in self._facts.limits.items():
            for at, limit in limits:
                yield micros(at), "limit", queue, limit

    def change(self, what: str, whom: str, number: int | None) -> None:
        """Let one of those happen."""
        self.version += 1
        match what:
            case "start":
                self._living[whom] = self._facts.workers[whom]
            case "end":
                self._living.pop(whom, None)
            case "pause":
                self._paused.add(whom)
            case "resume":
                self._paused.discard(whom)
            case _:
                self._limits[whom] = number

    def take(self, worker: str, queue: str, name: str) -> None:
        """A run begins."""
        self.version += 1
        self._taken[worker] += 1
        self._running[queue, name] += 1

    def give_back(self, worker: str, queue: str, name: str) -> None:
        """A run is over."""
        self.version += 1
        self._taken[worker] -= 1
        self._running[queue, name] -= 1

    def worker_for(self, queue: str, name: str, wanted: str | None) -> str | None:
        """Who has a free slot: whoever is ``wanted``, else who has most of them; None: nobody."""
        if queue in self._paused or self._limited(queue, name):
            return None
        free = {
            worker.id: left
            for worker in self._living.values()
            if worker.serves(queue, name) and (left := self._left(worker)) > 0
        }
        if wanted in free:
            return wanted
        return min(free, key=lambda each: (-free[each], each), default=None)

    def is_free(self, queue: str, name: str) -> bool:
        """Whether anybody has a free slot."""
        return not (queue in self._paused or self._limited(queue, name)) and any(
            self._left(worker) > 0 and worker.serves(queue, name)
            for worker in self._living.values()
        )

    def _left(self, worker: WorkerFacts) -> int:
        capacity = worker.capacity if self._policy.slots is None else self._policy.slots
        return capacity - self._taken[worker.id]

    def _limited(self, queue: str, name: str) -> bool:
        of_queue = self._policy.of_queue.get(queue, self._limits.get(queue))
        if of_queue is not None and of_queue <= self._running_where(0, queue):
            return True
        of_name = self._policy.of_name.get(name)
        return of_name is not None and of_name <= self._running_where(1, name)

    def _running_where(self, place: int, what: str) -> int:
        return sum(number for each, number in self._running.items() if each[place] == what)
