"""What a log comes to, so that two of them can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from attrs import Factory, define, frozen

from ...domain import events as e
from ...domain.values import ReleaseReason
from ..replay.clock import micros
from ..replay.waiting import waits_of
from ..streams import Step

#: What is compared, in order; times are microseconds.
MEASURES = (
    "runs",
    "completed",
    "retries",
    "failed for good",
    "interrupted",
    "rate-limit hits",
    "groups run",
    "items run",
    "items per run",
    "wait p50",
    "wait p95",
    "wait max",
    "still waiting",
)
TIMES = frozenset({"wait p50", "wait p95", "wait max"})


@define
class Measures:
    """The counts of one name, or of all together.

    ``waits`` are the schedule-to-start times of the runs that began in the window, the hold of a
    group and the wait for a retry included, in microseconds.
    """

    runs: int = 0
    completed: int = 0
    retries: int = 0
    failed: int = 0
    interrupted: int = 0
    rate_limited: int = 0
    groups: int = 0
    items: int = 0
    waiting: int = 0
    waits: list[int] = Factory(list[int])

    def add(self, other: Measures) -> None:
        """Take in the counts of another name."""
        self.runs += other.runs
        self.completed += other.completed
        self.retries += other.retries
        self.failed += other.failed
        self.interrupted += other.interrupted
        self.rate_limited += other.rate_limited
        self.groups += other.groups
        self.items += other.items
        self.waiting += other.waiting
        self.waits += other.waits

    @property
    def numbers(self) -> Mapping[str, float]:
        """All measures by name."""
        ordered = sorted(self.waits)
        per_run = self.items / self.groups if self.groups else 0.0
        values = (
            self.runs, self.completed, self.retries, self.failed, self.interrupted,
            self.rate_limited, self.groups, self.items, round(per_run, 2),
            share(ordered, 0.5), share(ordered, 0.95), share(ordered, 1.0), self.waiting,
        )  # fmt: skip
        return dict(zip(MEASURES, values, strict=True))


def share(ordered: Sequence[int], part: float) -> int:
    """The smallest of these that so many of them do not exceed; 0 of none."""
    return ordered[max(0, -(-int(len(ordered) * part * 1_000) // 1_000) - 1)] if ordered else 0


@frozen
class Start:
    """A start of a job: how long it had waited, in microseconds, and when it came."""

    job_id: UUID
    number: int
    at: datetime
    waited: int


@define
class Reckoning:
    """A log measured: by name, and every start."""

    by_name: dict[str, Measures] = Factory(dict[str, Measures])
    starts: list[Start] = Factory(list[Start])

    @property
    def total(self) -> Measures:
        """All names together."""
        total = Measures()
        for each in self.by_name.values():
            total.add(each)
        return total


def reckon(lives: Iterable[Sequence[Step]], since: datetime, until: datetime) -> Reckoning:
    """Measure the lives of a window."""
    made = Reckoning()
    for life in lives:
        name = life[0].after.spec.name
        measures = made.by_name.setdefault(name, Measures())
        for step in life:
            if since <= step.recorded.at <= until:
                _count(step, measures)
        for wait in waits_of(life, until):
            if wait.started is None:
                measures.waiting += 1
            elif wait.started >= micros(since):
                waited = wait.started - wait.since
                measures.waits.append(waited)
                at = life[wait.version - life[0].recorded.version].recorded.at
                made.starts.append(Start(wait.job_id, wait.start, at, waited))
    made.by_name = dict(sorted(made.by_name.items()))
    return made


def _count(step: Step, measures: Measures) -> None:
    event = step.recorded.event
    match event:
        case e.Leased():
            measures.runs += 1
            if step.after.spec.group is not None:
                measures.groups += 1
                measures.items += len(step.after.items)
        case e.Completed():
            measures.completed += 1
        case e.RetryScheduled():
            measures.retries += 1
        case e.LeaseExpired():
            measures.interrupted += 1
        case e.Released():
            measures.rate_limited += event.reason is ReleaseReason.RATE_LIMITED
        case e.Failed():
            measures.failed += 1
        case _:
            pass


@frozen
class Agreement:
    """How well a baseline tells what was: starts of both, and by how much they differ at most.

    ``furthest`` is in microseconds, of the starts that both have.
    """

    recorded: int
    simulated: int
    both: int
    furthest: int

    @property
    def exact(self) -> bool:
        """Whether every start is there, at its very microsecond."""
        return self.recorded == self.simulated == self.both and not self.furthest


def agreement(recorded: Reckoning, baseline: Reckoning) -> Agreement:
    """Compare the starts of what was recorded with those of the baseline."""
    was = {(each.job_id, each.number): each.at for each in recorded.starts}
    now = {(each.job_id, each.number): each.at for each in baseline.starts}
    both = was.keys() & now.keys()
    apart = (abs(micros(was[each]) - micros(now[each])) for each in both)
    return Agreement(len(was), len(now), len(both), max(apart, default=0))
