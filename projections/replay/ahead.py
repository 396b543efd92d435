"""Which starts went before a job that was ready too: those that stood ahead of it in claim order.

Claims go by priority, then due time, then sequence.  Queues of one priority take turns, so that a
job of another queue is ahead only when its priority is higher.  The worker that took it must be one
that could have taken the other instead: it serves that queue, and has a handler of that name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from .facts import WorkerFacts
from .waiting import Pending


class Ahead:
    """The starts of a log, by queue and priority in order of time."""

    def __init__(self, workers: Mapping[str, WorkerFacts], pending: Iterable[Pending]) -> None:
        self._workers = workers
        self._starts: dict[tuple[str, int], list[Pending]] = {}
        for each in pending:
            if each.started is not None:
                self._starts.setdefault((each.queue, each.priority), []).append(each)
        for starts in self._starts.values():
            starts.sort(key=_started)

    def last(self, waiting: Pending, since: int, until: int) -> int | None:
        """When, between two moments, a job ahead was started last; None when none was."""
        found: int | None = None
        for (queue, priority), starts in self._starts.items():
            higher = priority > waiting.priority
            if higher or (priority == waiting.priority and queue == waiting.queue):
                low = since if found is None else found
                at = self._last(starts, waiting, low, until, higher=higher)
                found = found if at is None else at
        return found

    def _last(
        self, starts: Sequence[Pending], waiting: Pending, since: int, until: int, *, higher: bool
    ) -> int | None:
        place = waiting.due_at, waiting.seq
        for index in range(bisect_left(starts, until, key=_started) - 1, -1, -1):
            start = starts[index]
            at = _started(start)
            if at <= since:
                return None
            worker = self._workers.get(start.worker or "")
            serves = worker is not None and worker.serves(waiting.queue, waiting.name)
            if serves and (higher or (start.due_at, start.seq) < place):
                return at
        return None


def _started(start: Pending) -> int:
    assert start.started is not None
    return start.started
