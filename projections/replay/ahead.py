"""Which starts went before a job that was ready too: those that stood ahead of it in claim order.

Claims go by priority, then due time, then sequence.  Queues of one priority take turns, so that a
job of another queue is ahead only when its priority is higher, and when a worker took it that
serves this queue as well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

PRIORITY_MAX = 9


class Start(NamedTuple):
    """One start, in microseconds since 1970, with what the claim went by."""

    at: int
    due_at: int
    seq: int
    worker: str


class Ahead:
    """The starts of every queue and priority in order of time."""

    def __init__(self, queues_of: Mapping[str, frozenset[str]]) -> None:
        self._queues_of = queues_of
        self._starts: dict[tuple[str, int], list[Start]] = {}
        self._sorted = False

    def add(self, queue: str, priority: int, start: Start) -> None:
        """Remember a start, in any order."""
        self._starts.setdefault((queue, priority), []).append(start)
        self._sorted = False

    def last(
        self, queue: str, priority: int, place: tuple[int, int], since: int, until: int
    ) -> int | None:
        """When, between two moments, a job ahead was started last; None when none was.

        ``place`` is the due time and the sequence of the job that waited.
        """
        if not self._sorted:
            for starts in self._starts.values():
                starts.sort()
            self._sorted = True
        found: int | None = None
        for (other, rank), starts in self._starts.items():
            if rank < priority or (rank == priority and other != queue):
                continue
            low = since if found is None else found
            at = self._last(starts, queue, place if rank == priority else None, low, until)
            found = found if at is None else at
        return found

    def _last(
        self,
        starts: list[Start],
        queue: str,
        place: tuple[int, int] | None,
        since: int,
        until: int,
    ) -> int | None:
        for index in range(bisect_left(starts, (until,)) - 1, -1, -1):
            start = starts[index]
            if start.at <= since:
                return None
            serves = queue in self._queues_of.get(start.worker, ())
            if serves and (place is None or (start.due_at, start.seq) < place):
                return start.at
        return None


def ahead(
    queues_of: Mapping[str, frozenset[str]], starts: Iterable[tuple[str, int, Start]]
) -> Ahead:
    """The starts of a log by queue and priority."""
    made = Ahead(queues_of)
    for queue, priority, start in starts:
        made.add(queue, priority, start)
    return made
