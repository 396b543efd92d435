"""Which jobs suffered most.

First those that failed for good, then those that ran twice at once, then by the time that they
lost: in waits that nobody had planned, and in runs that came to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from attrs import define, field

from ..replay.clock import micros
from ..replay.faults import Duplicate
from ..replay.runs import Run
from ..replay.waiting import Cause
from ..replay.waits import Wait

#: Waits that were asked for.
PLANNED = frozenset({Cause.DELAY, Cause.GROUP_HOLD})


@define
class Suffered:
    """What happened to one job; ``waited`` and ``wasted`` are microseconds."""

    job_id: UUID
    name: str
    failed: bool = False
    twice: bool = False
    waited: int = 0
    wasted: int = 0

    @property
    def lost(self) -> int:
        """The time that it lost."""
        return self.waited + self.wasted


@define
class Suffering:
    """Counts what happened to jobs from ``since`` to ``until``."""

    since: datetime
    until: datetime
    _jobs: dict[UUID, Suffered] = field(factory=dict[UUID, Suffered])

    def add_wait(self, wait: Wait) -> None:
        """Count a wait of the window."""
        unplanned = (each for each in wait.segments if each.cause not in PLANNED)
        if waited := sum(each.microseconds for each in unplanned):
            self._of(wait.job_id, wait.name).waited += waited

    def add_runs(self, runs: Iterable[Run]) -> None:
        """Count runs that touch the window."""
        for run in runs:
            if run.ended is None or run.end == "completed" or run.ended > self.until:
                continue
            suffered = self._of(run.job_id, run.name)
            suffered.wasted += micros(run.ended) - micros(max(run.began, self.since))
            suffered.failed = suffered.failed or run.end == "failed"

    def add_duplicates(self, duplicates: Iterable[Duplicate]) -> None:
        """Count jobs that ran twice at once."""
        for each in duplicates:
            self._of(each.second.job_id, each.second.name).twice = True

    def most(self, number: int) -> list[Suffered]:
        """The jobs that suffered most, the worst first."""
        order = sorted(
            self._jobs.values(),
            key=lambda each: (not each.failed, not each.twice, -each.lost, each.job_id.int),
        )
        return order[:number]

    def _of(self, job_id: UUID, name: str) -> Suffered:
        return self._jobs.setdefault(job_id, Suffered(job_id, name))
