"""What one run of one queue measured, and what the figures are called."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

#: A run during which others used more cores than this is not counted.
FOREIGN_CORES_MAX = 0.3


@frozen
class Result:
    """One run.  ``foreign`` is how many cores others used, ``figures`` are named in ``FIGURES``."""

    measure: str
    queue: str
    round: int
    jobs: int
    foreign: float
    figures: Mapping[str, float]

    @property
    def quiet(self) -> bool:
        """Whether the machine was its own."""
        return self.foreign <= FOREIGN_CORES_MAX


@frozen
class Figure:
    """A figure's title with its unit, its decimals, and whether more is better."""

    title: str
    digits: int = 0
    more: bool = False


FIGURES = MappingProxyType(
    {
        "jobs_per_second": Figure("jobs/s", more=True),
        "steady_per_second": Figure("from the first job on, jobs/s", more=True),
        "bulk_per_second": Figure("enqueued in bulk, jobs/s", more=True),
        "single_per_second": Figure("enqueued one by one, jobs/s", more=True),
        "postgres_us": Figure("PostgreSQL, µs a job", 1),
        "worker_us": Figure("workers, µs a job", 1),
        "wal_bulk": Figure("WAL of the enqueue, bytes a job"),
        "wal_drain": Figure("WAL of the drain, bytes a job"),
        "wal": Figure("WAL, bytes a job"),
        "size_bulk": Figure("tables after the enqueue, bytes a job"),
        "memory_peak": Figure("peak memory of a worker, MB"),
        "start_p50": Figure("start after the call, p50, ms", 1),
        "start_p95": Figure("p95, ms", 1),
        "start_p99": Figure("p99, ms", 1),
        "items_per_second": Figure("items/s", more=True),
        "open_items_per_second": Figure("items/s, each transaction open 10 ms", more=True),
        "served_items_per_second": Figure("items/s beside a worker that takes them", more=True),
        "ringing_per_second": Figure("workers are woken, jobs/s", more=True),
        "silent_per_second": Figure("nobody is woken, jobs/s", more=True),
        "ringing": Figure("what waking leaves of the speed", 2, more=True),
        "behind_per_second": Figure("jobs/s with a long history", more=True),
        "slower": Figure("times as slow", 2),
        "claim_ms": Figure("claim of a batch, ms", 1),
        "behind_claim_ms": Figure("the same with a long history, ms", 1),
        "before_per_second": Figure("before, jobs/s", more=True),
        "after_per_second": Figure("after the churn, jobs/s", more=True),
        "held_per_second": Figure("after the churn under an old snapshot, jobs/s", more=True),
        "kept": Figure("what the snapshot leaves of the speed", 2, more=True),
        "paced_per_second": Figure("kept up with, jobs/s", more=True),
        "held_paced_per_second": Figure("the same under the snapshot, jobs/s", more=True),
        "late_p99": Figure("start at the end of the churn, p99, ms", 1),
        "held_late_p99": Figure("the same under the snapshot, ms", 1),
        "named": Figure("doctor named the session (1: yes)", more=True),
        "core_percent": Figure("CPU of the worker, % of a core", 2),
        "postgres_percent": Figure("CPU of PostgreSQL, % of a core", 2),
        "statements_per_second": Figure("statements/s", 1),
        "queries_per_second": Figure("without BEGIN, COMMIT and SET, statements/s", 1),
        "transactions_per_second": Figure("transactions/s", 1),
    }
)
#: measure -> the figures that it is about, by which queues are compared
MAIN = MappingProxyType(
    {
        "drain": ("jobs_per_second", "bulk_per_second", "wal"),
        "two": ("jobs_per_second",),
        "single": ("single_per_second",),
        "bulk": ("bulk_per_second",),
        "latency": ("start_p50", "start_p99"),
        "latency-two": ("start_p50", "start_p99"),
        "hot": ("items_per_second", "open_items_per_second"),
        "notify": ("ringing",),
        "growth": ("slower",),
        "snapshot": ("kept",),
        "idle": ("core_percent", "statements_per_second"),
    }
)
TITLES = MappingProxyType(
    {
        "drain": "drain by one worker process",
        "two": "drain by two worker processes",
        "single": "enqueue one by one, each with its own commit",
        "bulk": "enqueue in bulk",
        "latency": "start on an idle queue, one worker",
        "latency-two": "start on an idle queue, two workers",
        "hot": "one hot key, 20 producers",
        "notify": "64 producers at once, with wake-ups and without",
        "growth": "drain on an empty database and with a long history",
        "snapshot": "drain after jobs have passed under an idle transaction's old snapshot",
        "idle": "a worker of 20 queues with nothing to do",
    }
)
