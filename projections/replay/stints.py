"""The runs of a log as capacity sees them: in columns, because there may be a million."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

#: The end of a run that is not over.
NEVER = 2**62


class Stint(NamedTuple):
    """A run of a worker for a queue, in microseconds since 1970."""

    worker: str
    queue: str
    since: int
    until: int


class Stints:
    """Runs, to be gone through in order of their beginnings and of their ends."""

    def __init__(self) -> None:
        self._since, self._until = array("q"), array("q")
        self._worker, self._queue = array("l"), array("l")
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, worker: str, queue: str, since: int, until: int | None) -> None:
        """Add a run; ``until`` is None while it goes on."""
        self._since.append(since)
        self._until.append(NEVER if until is None else until)
        self._worker.append(self._number(worker))
        self._queue.append(self._number(queue))

    def by_beginning(self) -> Iterator[Stint]:
        """The runs in the order in which they began."""
        return map(self._stint, sorted(range(len(self._since)), key=self._since.__getitem__))

    def by_end(self) -> Iterator[Stint]:
        """The runs that are over in the order in which they ended."""
        over = (index for index, until in enumerate(self._until) if until != NEVER)
        return map(self._stint, sorted(over, key=self._until.__getitem__))

    def _stint(self, index: int) -> Stint:
        names = self._names
        worker, queue = names[self._worker[index]], names[self._queue[index]]
        return Stint(worker, queue, self._since[index], self._until[index])

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number
