"""What takes its time: an old snapshot of an idle transaction, a worker with nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import psycopg

from ..environments import TOP, environment_of
from ..meter import Meter, run_seconds
from ..peers import Spec
from ..process import Workers, call
from ..result import Result
from .bench import Bench, percentile
from .drains import Drained, drain, fill, now

CHURN_PER_SECOND = 500
LATE_SECONDS = 30.0
WATCH_SECONDS = 0.01
IDLE_SETTLE_SECONDS = 5.0
#: The statistics of a session reach the others within a second.
COUNTERS_SECONDS = 1.5


def snapshot(bench: Bench, spec: Spec, number: int) -> Result:
    """A drain after 500 jobs a second, without and under an idle transaction's snapshot."""
    figures: dict[str, float] = {}
    foreign = 0.0
    for held in (False, True):
        dsn = bench.fresh(spec)
        before = _drained(bench, spec, dsn)
        with _old_snapshot(dsn, held) as pid:
            rate, late, busy = _churn(bench, spec, dsn)
            after = _drained(bench, spec, dsn)
            if held and spec.name == "leasebook":
                figures["named"] = float(_doctor_names(spec, dsn, pid))
        foreign = max(foreign, before.foreign, busy, after.foreign)
        prefix = "held_" if held else ""
        figures[f"{prefix}paced_per_second"] = rate
        figures[f"{prefix}late_p99"] = late
        figures["held_per_second" if held else "after_per_second"] = _rate(after)
        if not held:
            figures["before_per_second"] = _rate(before)
    figures["kept"] = figures["held_per_second"] / figures["after_per_second"]
    jobs = spec.jobs(bench.size.jobs)
    return Result("snapshot", spec.text, number, jobs, foreign, figures)


def idle(bench: Bench, spec: Spec, number: int) -> Result:
    """What a worker of 20 queues asks of its machine and of PostgreSQL while there is no job."""
    dsn, server = bench.fresh(spec), bench.server
    counted = server.count_statements()
    with Workers(spec, dsn, 1, many=True) as workers:
        workers.go()
        time.sleep(IDLE_SETTLE_SECONDS)
        bench.wait_quiet()
        time.sleep(COUNTERS_SECONDS)
        asked, transactions = server.statements() if counted else None, server.transactions()
        meter, ran, began = Meter(server.postmaster, workers.pids), run_seconds(workers.pids), now()
        time.sleep(bench.size.idle_seconds)
        seconds = now() - began
        worker = run_seconds(workers.pids) - ran
        postgres, _, foreign = meter.read()
        time.sleep(COUNTERS_SECONDS)
        watched = now() - began
        workers.check()
        figures = {
            "core_percent": worker / seconds * 100,
            "transactions_per_second": (server.transactions() - transactions) / watched,
        }
        if asked is not None:
            after = server.statements()
            figures["statements_per_second"] = (after[0] - asked[0]) / watched
            figures["queries_per_second"] = (after[1] - asked[1]) / watched
    if server.postmaster is None:
        foreign = 0.0
    else:
        figures["postgres_percent"] = postgres / seconds * 100
    return Result("idle", spec.text, number, 0, foreign, figures)


def _drained(bench: Bench, spec: Spec, dsn: str) -> Drained:
    return drain(bench, spec, dsn, 1, fill(bench, spec, dsn))


def _rate(drained: Drained) -> float:
    return drained.figures["jobs_per_second"]


@contextmanager
def _old_snapshot(dsn: str, held: bool) -> Generator[int]:
    """A session that is idle in a transaction, if ``held``; its pid."""
    if not held:
        yield 0
        return
    with psycopg.connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from pg_catalog.pg_class")
        yield connection.info.backend_pid
        with suppress(psycopg.Error):
            connection.rollback()


def _churn(bench: Bench, spec: Spec, dsn: str) -> tuple[float, float, float]:
    """Jobs a second that passed, p99 of the last starts in ms, cores that others used."""
    jobs = round(CHURN_PER_SECOND * bench.size.snapshot_seconds)
    with Workers(spec, dsn, 1) as workers:
        workers.go()
        meter, began = Meter(bench.server.postmaster, workers.pids), now()
        call(spec, "paced", dsn, jobs, 1 / CHURN_PER_SECOND)
        until = time.monotonic() + LATE_SECONDS
        while workers.counter.runs < jobs:
            workers.check()
            if time.monotonic() > until:
                raise workers.failure()
            time.sleep(WATCH_SECONDS)
        seconds = now() - began
        foreign = meter.read()[2] if bench.server.postmaster else 0.0
        taken = sorted(each / 1_000 for each in workers.counter.latencies)
    return jobs / seconds, percentile(taken, 0.99), foreign


def _doctor_names(spec: Spec, dsn: str, pid: int) -> bool:
    """Whether ``leasebook doctor`` names this session; from a second on it is old."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "leasebook.infra.cli",
            "doctor",
            "--dsn",
            dsn,
            "--old",
            "1",
            "--json",
        ],
        cwd=TOP,
        env=environment_of(spec).variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise RuntimeError(f"doctor failed\n{done.stderr}")
    told = json.loads(done.stdout)
    return any(f"pid {pid} " in each["seen"] for each in told["findings"])
