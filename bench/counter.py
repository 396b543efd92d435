"""A small file in shared memory: workers count handler runs in it, and note when each began.

So a drain is watched without a question to PostgreSQL.  The file is an array of 64-bit numbers:
runs of each worker, then the number of start latencies, then the latencies in microseconds.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

WORKERS_MAX = 16
CELLS = 8192
_NOTED = WORKERS_MAX
_FIRST = WORKERS_MAX + 1
#: Where a worker process is told its file and its place in it, as ``path:slot``.
VARIABLE = "LEASEBOOK_BENCH_COUNTER"


class Counter:
    """One open file.  Each cell has one writer, so nothing is locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(bytes(CELLS * 8))
        with path.open("r+b") as file:
            self.cells = memoryview(mmap.mmap(file.fileno(), CELLS * 8)).cast("Q")

    @property
    def runs(self) -> int:
        """Handler runs of all workers so far."""
        return sum(self.cells[:WORKERS_MAX])

    @property
    def latencies(self) -> list[int]:
        """From the enqueue call to the handler's first line, in microseconds, as they came."""
        return list(self.cells[_FIRST : _FIRST + self.cells[_NOTED]])


class _Mine:
    """The counter of this worker process."""

    cells: memoryview[int] | None = None
    slot = 0


def attach() -> None:
    """Open the counter that the environment names."""
    path, _, slot = os.environ[VARIABLE].rpartition(":")
    _Mine.cells = Counter(Path(path)).cells
    _Mine.slot = int(slot)


def now() -> int:
    """Microseconds on the clock that all processes of a machine share."""
    return time.monotonic_ns() // 1_000


def ran(asked: int) -> None:
    """The whole body of every job.  ``asked`` is when it was enqueued, 0 when nobody asks."""
    cells = _Mine.cells
    assert cells is not None
    cells[_Mine.slot] += 1
    if asked:
        noted = cells[_NOTED]
        if _FIRST + noted < CELLS:
            cells[_FIRST + noted] = max(0, now() - asked)
            cells[_NOTED] = noted + 1
