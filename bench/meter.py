"""Who used the processors: PostgreSQL, the workers, or somebody else on the machine.

Figures from a machine that somebody else was using are worth nothing, so every measurement carries
``foreign``, the number of cores that were busy with neither side nor this program.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
QUIET_CORES = 0.15
QUIET_LOOK_SECONDS = 0.4


def _stat(pid: int) -> tuple[int, int, int]:
    """Parent, own ticks, ticks of children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])


def family(roots: Iterable[int]) -> list[int]:
    """These processes and all that descend from them."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children[_stat(int(entry.name))[0]].append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = list(roots)
    for pid in found:
        found.extend(children[pid])
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """Processor time of these processes with their families, the ended ones included."""
    total = 0
    for pid in family(roots):
        try:
            _, own, ended = _stat(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += own + ended
    return total / TICKS


def run_seconds(roots: Iterable[int]) -> float:
    """As ``cpu_seconds``, exact to the microsecond, but without threads that have ended.

    Where the kernel does not tell it, ``cpu_seconds``.
    """
    nanoseconds = 0
    for pid in family(roots):
        try:
            threads = list(Path(f"/proc/{pid}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            continue
        for thread in threads:
            try:
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return nanoseconds / 1e9 or cpu_seconds(roots)


def peak_megabytes(roots: Iterable[int]) -> float:
    """The sum of the peaks of resident memory; what they share counts for each."""
    kilobytes = 0
    for pid in family(roots):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1024


def postmaster_of(backend: int) -> int | None:
    """The server process behind a backend's pid, None when it runs on another machine."""
    try:
        parent, _, _ = _stat(backend)
        ours = Path(f"/proc/{backend}/comm").read_text().startswith("postgres")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parent if ours else None


def _busy_seconds() -> float:
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, *rest = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(rest)) / TICKS


class Meter:
    """Counts from its making to ``read``."""

    def __init__(self, postmaster: int | None, workers: Iterable[int] = ()) -> None:
        self._postmaster = [] if postmaster is None else [postmaster]
        self._workers = list(workers)
        self._began = time.perf_counter()
        self._before = self._now()

    def _now(self) -> tuple[float, float, float, float]:
        postgres, workers = cpu_seconds(self._postmaster), cpu_seconds(self._workers)
        # Children of ours that have ended, a producer for example, are ours.
        own = sum(os.times()[:4])
        return _busy_seconds(), postgres, workers, own

    def read(self) -> tuple[float, float, float]:
        """Processor seconds of PostgreSQL and of the workers, and cores used by others."""
        elapsed = time.perf_counter() - self._began
        pairs = zip(self._now(), self._before, strict=True)
        busy, postgres, workers, own = (after - before for after, before in pairs)
        return postgres, workers, max(0.0, busy - postgres - workers - own) / elapsed


def wait_quiet(seconds: float, postmaster: int | None) -> None:
    """Wait until others use little of the machine, at most so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        meter = Meter(postmaster)
        time.sleep(QUIET_LOOK_SECONDS)
        if meter.read()[2] < QUIET_CORES:
            return
