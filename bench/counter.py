"""A small file in shared memory: workers count handler runs in it, and note when each began.

So a drain is watched without a question to PostgreSQL.  The file is an array of 64-bit numbers:
runs of each worker, then for each worker the number of its start latencies and the latest of them,
in microseconds.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

WORKERS_MAX = 4
#: How many latencies of a worker are kept.
KEPT = 4_000
#: A worker's number of latencies, and after it the latencies.
NOTED = WORKERS_MAX
_ROOM = KEPT + 1
CELLS = WORKERS_MAX + WORKERS_MAX * _ROOM
#: Where a worker process is told its file and its place in it, as ``path:slot``.
VARIABLE = "LEASEBOOK_BENCH_COUNTER"


def noted_at(slot: int) -> int:
    """The cell with a worker's number of latencies."""
    return NOTED + slot * _ROOM


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
        """From the enqueue call to the handler's first line, the latest of each; microseconds."""
        found: list[int] = []
        for slot in range(WORKERS_MAX):
            place = noted_at(slot)
            found.extend(self.cells[place + 1 : place + 1 + min(KEPT, self.cells[place])])
        return found


class _Mine:
    """The counter of this worker process."""

    cells: memoryview[int] | None = None
    slot = 0
    place = 0


def attach() -> None:
    """Open the counter that the environment names."""
    path, _, slot = os.environ[VARIABLE].rpartition(":")
    _Mine.cells = Counter(Path(path)).cells
    _Mine.slot = int(slot)
    _Mine.place = noted_at(_Mine.slot)


def now() -> int:
    """Microseconds on the clock that all processes of a machine share."""
    return time.monotonic_ns() // 1_000


def ran(asked: int) -> None:
    """The whole body of every job.  ``asked`` is when it was enqueued, 0 when nobody asks."""
    cells = _Mine.cells
    assert cells is not None
    cells[_Mine.slot] += 1
    if asked:
        place = _Mine.place
        noted = cells[place]
        cells[place + 1 + noted % KEPT] = max(0, now() - asked)
        cells[place] = noted + 1
