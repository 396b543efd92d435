"""What each worker did, and where it was slower than the others at the same work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median_low

from attrs import Factory, define, frozen

from .clock import micros
from .facts import Facts, WorkerFacts
from .runs import Run

SLOW_FACTOR = 2.0
#: Fewer completed runs than this say nothing about a worker or about the others.
RUNS_MIN = 5


@frozen
class Slow:
    """A worker took ``factor`` times as long for ``name`` as the others; medians in microseconds.

    Only runs that were completed are compared, ``runs`` of them by this worker.
    """

    worker: str
    name: str
    runs: int
    median: int
    others: int

    @property
    def factor(self) -> float:
        """How many times as long it took."""
        return self.median / self.others if self.others else float("inf")


@define
class Work:
    """The runs of one worker by how they ended, and the microseconds that they took together.

    ``lost`` leases ended without an answer; of ``refused`` runs a late answer was refused.
    ``facts`` is None for a worker of whose start the audit log does not tell.
    """

    worker: str
    facts: WorkerFacts | None
    runs: int = 0
    microseconds: int = 0
    ends: Counter[str] = Factory(Counter[str])
    lost: int = 0
    refused: int = 0
    first: datetime | None = None
    last: datetime | None = None


@frozen
class Workforce:
    """Every worker that did or was anything, by id, and what was slow, the slowest first."""

    work: Mapping[str, Work]
    slow: tuple[Slow, ...]


def workforce(runs: Iterable[Run], facts: Facts, until: datetime) -> Workforce:
    """What the workers of ``runs`` did; a run that is not over counts up to ``until``.

    Of the audit log's workers those without a run are left out.
    """
    late = facts.late_ends()
    work: dict[str, Work] = {}
    times: dict[str, dict[str, list[int]]] = {}
    for run in runs:
        ended = min(until, run.ended or until)
        length = max(0, micros(ended) - micros(run.began))
        done = work.setdefault(run.worker, Work(run.worker, facts.workers.get(run.worker)))
        done.runs += 1
        done.microseconds += length
        done.ends[run.end] += 1
        done.lost += run.lost
        done.refused += (run.job_id, run.token) in late
        done.first = run.began if done.first is None else min(done.first, run.began)
        done.last = ended if done.last is None else max(done.last, ended)
        if run.end == "completed":
            times.setdefault(run.name, {}).setdefault(run.worker, []).append(length)
    slow = [each for name in times for each in _slow(name, times[name])]
    return Workforce(
        {worker: work[worker] for worker in sorted(work)},
        tuple(sorted(slow, key=lambda each: (-each.factor, each.worker, each.name))),
    )


def _slow(name: str, times: Mapping[str, list[int]]) -> Iterable[Slow]:
    for worker, own in times.items():
        others = [each for other, lengths in times.items() if other != worker for each in lengths]
        if min(len(own), len(others)) < RUNS_MIN:
            continue
        slow = Slow(worker, name, len(own), median_low(own), median_low(others))
        if slow.factor >= SLOW_FACTOR:
            yield slow
