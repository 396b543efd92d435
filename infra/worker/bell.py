"""What the tick thread waits on: a finished run, a wake-up from outside, a stop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from .answers import Report


class Bell:
    """Finished runs and a flag; any thread may put, one thread takes."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reports: deque[Report] = deque()
        # A deque, not a flag: a ring between the look at a flag and its reset would be lost.
        self._rings: deque[None] = deque()

    def put(self, report: Report) -> None:
        """Hand in the end of a run and wake the tick thread."""
        self._reports.append(report)
        self._event.set()

    def put_quietly(self, report: Report) -> None:
        """Hand in without waking: the caller wakes once for many."""
        self._reports.append(report)

    def wake(self) -> None:
        """Wake the tick thread for whatever was handed in."""
        self._event.set()

    def ring(self) -> None:
        """Say that the queue may hold something new."""
        self._rings.append(None)
        self._event.set()

    def take(self) -> tuple[list[Report], bool]:
        """Everything handed in so far, and whether it was rung; both start anew."""
        self._event.clear()
        rung = bool(self._rings)
        while self._rings:
            self._rings.pop()
        reports: list[Report] = []
        pop: Callable[[], Report] = self._reports.popleft
        while self._reports:
            reports.append(pop())
        return reports, rung

    def wait(self, seconds: float) -> None:
        """Wait until woken, at most so long."""
        self._event.wait(seconds)
