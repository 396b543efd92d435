"""What the tick thread waits on: a finished run, a wake-up from outside, a stop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from .answers import Entry


class Bell:
    """What runs have to tell, and a flag; any thread may put, one thread takes."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._entries: deque[Entry] = deque()
        # A deque, not a flag: a ring between the look at a flag and its reset would be lost.
        self._rings: deque[None] = deque()

    def put(self, entry: Entry) -> None:
        """Hand in the end of a run, or a write, and wake the tick thread."""
        self._entries.append(entry)
        self._event.set()

    def put_quietly(self, entry: Entry) -> None:
        """Hand in without waking: the caller wakes once for many."""
        self._entries.append(entry)

    def wake(self) -> None:
        """Wake the tick thread for whatever was handed in."""
        self._event.set()

    def ring(self) -> None:
        """Say that the queue may hold something new."""
        self._rings.append(None)
        self._event.set()

    def take(self) -> tuple[list[Entry], bool]:
        """Everything handed in so far, and whether it was rung; both start anew."""
        self._event.clear()
        rung = bool(self._rings)
        while self._rings:
            self._rings.pop()
        entries: list[Entry] = []
        pop: Callable[[], Entry] = self._entries.popleft
        while self._entries:
            entries.append(pop())
        return entries, rung

    def wait(self, seconds: float) -> None:
        """Wait until woken, at most so long."""
        self._event.wait(seconds)
