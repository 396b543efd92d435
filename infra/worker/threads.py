"""Threads for handlers that block.

They are daemons, unlike those of ``concurrent.futures``: a handler that hangs for ever must not
keep the process from ending.  A hung thread is abandoned, and its place is taken by a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

Work: TypeAlias = Callable[[], None]


class HandlerThreads:
    """Runs work on as many threads as are needed at once; idle ones are used again."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0

    def submit(self, work: Work) -> None:
        """Run ``work`` on an idle thread or a new one.  It must not raise."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._started += 1
                name = f"leasebook-handler-{self._started}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._work.put(work)

    def close(self) -> None:
        """Let the idle threads end.  Hung ones stay behind and die with the process."""
        with self._lock:
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # An idle thread keeps no arguments of its last job alive.
            with self._lock:
                self._idle += 1
