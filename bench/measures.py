"""What is measured, and how.  Every run has a fresh database; none asks PostgreSQL while it runs.

A drain: enqueue, VACUUM ANALYZE, CHECKPOINT, start the workers, wait until they have imported what
they need, then count handler runs in shared memory, and at the end ask until all is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

import psycopg
from attrs import evolve, frozen

from .database import SIZE, Server
from .meter import Meter, peak_megabytes, wait_quiet
from .peers import Spec
from .process import Workers, call

DRAIN_SECONDS_MAX = 180.0
WATCH_SECONDS = 0.002
SETTLE_SECONDS = 0.3
IDLE_SECONDS = 2.0
LATE_SECONDS = 5.0
SINGLE_JOBS = 2_000
PACED_JOBS = 300
CLAIMS = 20


@frozen
class Result:
    """What one run of one queue measured; None is what it does not measure.

    ``workers`` processes drained ``jobs`` jobs with ``behind`` finished and as many delayed ones
    in the same tables.  ``foreign`` is in cores, latencies and claims are milliseconds, CPU is
    microseconds a job, memory megabytes, WAL and size bytes a job.
    """

    measure: str
    queue: str
    jobs: int
    round: int = 0
    workers: int = 0
    behind: int = 0
    foreign: float = 0.0
    jobs_per_second: float | None = None
    steady_jobs_per_second: float | None = None
    bulk_per_second: float | None = None
    bulk_foreign: float = 0.0
    single_per_second: float | None = None
    wal_bulk: float | None = None
    wal_drain: float | None = None
    size_bulk: float | None = None
    postgres_us: float | None = None
    python_us: float | None = None
    memory_peak: float | None = None
    claim_ms: float | None = None
    start_p50: float | None = None
    start_p95: float | None = None
    start_p99: float | None = None


@frozen
class Bench:
    """Where to measure, and how much.  ``quiet`` seconds are waited for a machine at rest."""

    server: Server
    jobs: int
    behind: int
    quiet: float

    def wait_quiet(self) -> None:
        """Wait until the others on the machine do little."""
        wait_quiet(self.quiet, self.server.postmaster)

    def template(self, spec: Spec) -> str:
        """A database with the queue's empty tables."""
        return self.server.template(_name(spec), lambda dsn: call(spec, "setup", dsn))

    def loaded(self, spec: Spec) -> str:
        """A database with many finished and many delayed jobs."""

        def load(dsn: str) -> None:
            call(spec, "setup", dsn)
            call(spec, "finished", dsn, self.behind)
            call(spec, "delayed", dsn, self.behind)

        return self.server.template(f"{_name(spec)}_loaded", load)


Measure = Callable[[Bench, Spec], Iterator[Result]]


def bulk(bench: Bench, spec: Spec) -> Iterator[Result]:
    """Enqueue many in one transaction."""
    dsn = bench.server.fresh(bench.template(spec))
    yield _enqueue(bench, spec, dsn, Result("bulk", spec.text, bench.jobs))


def drain(bench: Bench, spec: Spec, workers: int = 1) -> Iterator[Result]:
    """Work off a backlog of jobs that do nothing."""
    dsn = bench.server.fresh(bench.template(spec))
    blank = Result("drain" if workers == 1 else "two", spec.text, bench.jobs, workers=workers)
    yield _drain(bench, spec, dsn, _enqueue(bench, spec, dsn, blank))


def growth(bench: Bench, spec: Spec) -> Iterator[Result]:
    """The same backlog alone, and with a long history and many delayed jobs behind it."""
    for behind, template in ((0, bench.template(spec)), (bench.behind, bench.loaded(spec))):
        dsn = bench.server.fresh(template)
        blank = Result("growth", spec.text, bench.jobs, workers=1, behind=behind)
        filled = _enqueue(bench, spec, dsn, blank)
        if spec.kind == "leasebook":
            filled = evolve(filled, claim_ms=median(call(spec, "claims", dsn, CLAIMS)))
        yield _drain(bench, spec, dsn, filled)


def single(bench: Bench, spec: Spec) -> Iterator[Result]:
    """Enqueue one by one, each with its own commit."""
    dsn = bench.server.fresh(bench.template(spec))
    bench.wait_quiet()
    meter = Meter(bench.server.postmaster)
    seconds = call(spec, "single", dsn, SINGLE_JOBS)
    foreign = meter.read()[2]
    rate = SINGLE_JOBS / seconds
    yield Result("single", spec.text, SINGLE_JOBS, foreign=foreign, single_per_second=rate)


def latency(bench: Bench, spec: Spec) -> Iterator[Result]:
    """How soon a job starts on an idle queue, from the call that enqueues it."""
    dsn = bench.server.fresh(bench.template(spec))
    with Workers(spec, dsn, 1) as workers:
        workers.go()
        time.sleep(IDLE_SECONDS)
        bench.wait_quiet()
        meter = Meter(bench.server.postmaster, workers.pids)
        call(spec, "paced", dsn, PACED_JOBS)
        foreign = meter.read()[2]
        until = time.monotonic() + LATE_SECONDS
        while workers.counter.runs < PACED_JOBS and time.monotonic() < until:
            time.sleep(WATCH_SECONDS)
        taken = sorted(each / 1_000 for each in workers.counter.latencies)
        if len(taken) < PACED_JOBS:
            raise workers.failure()
    yield Result(
        "latency",
        spec.text,
        PACED_JOBS,
        workers=1,
        foreign=foreign,
        start_p50=_percentile(taken, 0.50),
        start_p95=_percentile(taken, 0.95),
        start_p99=_percentile(taken, 0.99),
    )


MEASURES: dict[str, Measure] = {
    "drain": drain,
    "two": partial(drain, workers=2),
    "bulk": bulk,
    "single": single,
    "latency": latency,
    "growth": growth,
}


def _enqueue(bench: Bench, spec: Spec, dsn: str, blank: Result) -> Result:
    server = bench.server
    with psycopg.connect(dsn, autocommit=True) as connection:
        size = _size(connection)
        server.checkpoint()
        bench.wait_quiet()
        meter, wal = Meter(server.postmaster), server.wal()
        seconds = call(spec, "bulk", dsn, bench.jobs)
        written = server.wal() - wal
        foreign = meter.read()[2]
        grown = _size(connection) - size
        connection.execute("vacuum analyze")
    server.checkpoint()
    return evolve(
        blank,
        bulk_per_second=bench.jobs / seconds,
        bulk_foreign=foreign,
        foreign=foreign,
        wal_bulk=written / bench.jobs,
        size_bulk=grown / bench.jobs,
    )


def _drain(bench: Bench, spec: Spec, dsn: str, filled: Result) -> Result:
    server, jobs = bench.server, bench.jobs
    pending = spec.open(dsn).PENDING
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        Workers(spec, dsn, filled.workers) as workers,
    ):
        bench.wait_quiet()
        meter, wal, began = Meter(server.postmaster, workers.pids), server.wal(), _now()
        workers.go()
        first, before = _watch(workers, jobs, began)
        while _answer(connection, pending):
            _in_time(workers, began)
        ended = _now()
        written = server.wal() - wal
        postgres, python, foreign = meter.read()
        memory = peak_megabytes(workers.pids)
        # A job that is run twice shows only now.
        time.sleep(SETTLE_SECONDS)
        if workers.counter.runs != jobs:
            raise RuntimeError(f"{spec.text}: {workers.counter.runs:,} runs of {jobs:,} jobs")
    known = server.postmaster is not None
    return evolve(
        filled,
        foreign=foreign if known else 0.0,
        jobs_per_second=jobs / (ended - began),
        steady_jobs_per_second=(jobs - before) / (ended - first),
        wal_drain=written / jobs,
        postgres_us=postgres / jobs * 1e6 if known else None,
        python_us=python / jobs * 1e6,
        memory_peak=memory / filled.workers,
    )


def _watch(workers: Workers, jobs: int, began: float) -> tuple[float, int]:
    """Wait until all have run; when the first was seen, and how many had run by then."""
    first, before = 0.0, 0
    while (runs := workers.counter.runs) < jobs:
        if runs and not first:
            first, before = _now(), runs
        _in_time(workers, began)
    return first or began, before


def _in_time(workers: Workers, began: float) -> None:
    """One pause of a poll.  Raises RuntimeError when a worker has ended, or takes for ever."""
    workers.check()
    if _now() - began > DRAIN_SECONDS_MAX:
        raise workers.failure()
    time.sleep(WATCH_SECONDS)


def _now() -> float:
    return time.perf_counter()


def _answer(connection: psycopg.Connection, question: str) -> object:
    row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def _size(connection: psycopg.Connection) -> int:
    size = _answer(connection, SIZE)
    assert isinstance(size, int)
    return size


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _name(spec: Spec) -> str:
    return "".join(each if each.isalnum() else "_" for each in spec.text)[-30:].lower()
