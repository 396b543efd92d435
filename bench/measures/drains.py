"""Drains: how fast a backlog of jobs that do nothing is made and worked off.

Enqueue, VACUUM ANALYZE, CHECKPOINT, start the workers, wait until they have imported what they
need, then count handler runs in shared memory, and at the end ask until all is committed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median

import psycopg
from attrs import frozen

from ..database import SIZE
from ..meter import Meter, peak_megabytes
from ..peers import Spec
from ..process import Workers, call
from ..result import Result
from .bench import Bench, answer

DRAIN_SECONDS_MAX = 300.0
WATCH_SECONDS = 0.002
SETTLE_SECONDS = 0.3
CLAIMS = 20


@frozen
class Drained:
    """A backlog made and worked off: figures, and the cores that others used at worst."""

    figures: Mapping[str, float]
    foreign: float


def bulk(bench: Bench, spec: Spec, number: int) -> Result:
    """Enqueue many in one transaction."""
    filled = fill(bench, spec, bench.fresh(spec))
    jobs = spec.jobs(bench.size.jobs)
    return Result("bulk", spec.text, number, jobs, filled.foreign, filled.figures)


def one(bench: Bench, spec: Spec, number: int) -> Result:
    """Enqueue many, and work them off with one worker process."""
    return _drain("drain", bench, spec, number, 1)


def two(bench: Bench, spec: Spec, number: int) -> Result:
    """The same with two."""
    return _drain("two", bench, spec, number, 2)


def growth(bench: Bench, spec: Spec, number: int) -> Result:
    """The same backlog alone, and with a long history and all kinds of waiting jobs behind it."""
    dsn = bench.fresh(spec)
    alone = fill(bench, spec, dsn)
    figures = _claims(spec, dsn, "claim_ms")
    alone = drain(bench, spec, dsn, 1, alone)
    dsn = bench.loaded(spec)
    behind = fill(bench, spec, dsn)
    figures |= _claims(spec, dsn, "behind_claim_ms")
    behind = drain(bench, spec, dsn, 1, behind)
    rates = [each.figures["jobs_per_second"] for each in (alone, behind)]
    figures |= {"jobs_per_second": rates[0], "behind_per_second": rates[1]}
    figures |= {"slower": rates[0] / rates[1]}
    foreign = max(alone.foreign, behind.foreign)
    return Result("growth", spec.text, number, spec.jobs(bench.size.jobs), foreign, figures)


def _claims(spec: Spec, dsn: str, name: str) -> dict[str, float]:
    return {name: median(call(spec, "claims", dsn, CLAIMS))} if spec.name == "leasebook" else {}


def _drain(measure: str, bench: Bench, spec: Spec, number: int, workers: int) -> Result:
    dsn = bench.fresh(spec)
    drained = drain(bench, spec, dsn, workers, fill(bench, spec, dsn))
    jobs = spec.jobs(bench.size.jobs)
    return Result(measure, spec.text, number, jobs, drained.foreign, drained.figures)


def fill(bench: Bench, spec: Spec, dsn: str) -> Drained:
    """Enqueue the jobs of a drain."""
    server, jobs = bench.server, spec.jobs(bench.size.jobs)
    with psycopg.connect(dsn, autocommit=True) as connection:
        size = _size(connection)
        server.checkpoint()
        bench.wait_quiet()
        meter, wal = Meter(server.postmaster), server.wal()
        seconds = call(spec, "bulk", dsn, jobs)
        written = server.wal() - wal
        foreign = meter.read()[2]
        grown = _size(connection) - size
        connection.execute("vacuum analyze")
    server.checkpoint()
    figures = {
        "bulk_per_second": jobs / seconds,
        "wal_bulk": written / jobs,
        "size_bulk": grown / jobs,
    }
    return Drained(figures, foreign if server.postmaster else 0.0)


def drain(bench: Bench, spec: Spec, dsn: str, count: int, filled: Drained) -> Drained:
    """Work them off with so many worker processes.  Raises RuntimeError when one runs twice."""
    server, jobs = bench.server, spec.jobs(bench.size.jobs)
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        Workers(spec, dsn, count) as workers,
    ):
        bench.wait_quiet()
        meter, wal, began = Meter(server.postmaster, workers.pids), server.wal(), now()
        workers.go()
        first, before = _watch(workers, jobs, began)
        while answer(connection, spec.peer.PENDING):
            _in_time(workers, began)
        ended = now()
        written = server.wal() - wal
        postgres, python, foreign = meter.read()
        memory = peak_megabytes(workers.pids)
        # A job that is run twice shows only now.
        time.sleep(SETTLE_SECONDS)
        if workers.counter.runs != jobs:
            raise RuntimeError(f"{spec.text}: {workers.counter.runs:,} runs of {jobs:,} jobs")
    figures = {
        **filled.figures,
        "jobs_per_second": jobs / (ended - began),
        "steady_per_second": (jobs - before) / (ended - first),
        "wal_drain": written / jobs,
        "wal": filled.figures["wal_bulk"] + written / jobs,
        "worker_us": python / jobs * 1e6,
        "memory_peak": memory / count,
    }
    if server.postmaster is None:
        return Drained(figures, 0.0)
    figures["postgres_us"] = postgres / jobs * 1e6
    return Drained(figures, max(filled.foreign, foreign))


def _watch(workers: Workers, jobs: int, began: float) -> tuple[float, int]:
    """Wait until all have run; when the first was seen, and how many had run by then."""
    first, before = 0.0, 0
    while (runs := workers.counter.runs) < jobs:
        if runs and not first:
            first, before = now(), runs
        _in_time(workers, began)
    return first or began, before


def _in_time(workers: Workers, began: float) -> None:
    """One pause of a poll.  Raises RuntimeError when a worker has ended, or takes for ever."""
    workers.check()
    if now() - began > DRAIN_SECONDS_MAX:
        raise workers.failure()
    time.sleep(WATCH_SECONDS)


def now() -> float:
    """Seconds on the clock of all measures."""
    return time.perf_counter()


def _size(connection: psycopg.Connection) -> int:
    size = answer(connection, SIZE)
    assert isinstance(size, int)
    return size
