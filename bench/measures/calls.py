"""Single calls: how fast jobs are enqueued one by one, and how soon they start on an idle queue."""

from __future__ import annotations

import time

from ..meter import Meter
from ..peers import Spec
from ..process import Workers, call
from ..result import Result
from .bench import Bench, percentile
from .drains import WATCH_SECONDS

IDLE_SECONDS = 2.0
LATE_SECONDS = 5.0
GAP_SECONDS = 0.02
PRODUCERS = 20
WRITERS = 64
OPEN_SECONDS = 0.010


def single(bench: Bench, spec: Spec, number: int) -> Result:
    """Enqueue one by one, each with its own commit."""
    dsn = bench.fresh(spec)
    jobs = bench.size.single
    bench.wait_quiet()
    meter = Meter(bench.server.postmaster)
    seconds = call(spec, "single", dsn, jobs)
    foreign = _foreign(bench, meter)
    return Result("single", spec.text, number, jobs, foreign, {"single_per_second": jobs / seconds})


def latency(bench: Bench, spec: Spec, number: int) -> Result:
    """How soon a job starts on an idle queue, from the call that enqueues it."""
    return _latency("latency", bench, spec, number, 1)


def latency_two(bench: Bench, spec: Spec, number: int) -> Result:
    """The same with two workers that wait for it."""
    return _latency("latency-two", bench, spec, number, 2)


def hot(bench: Bench, spec: Spec, number: int) -> Result:
    """Many producers add to one key: at once, with transactions left open, and beside a worker."""
    size, figures, foreign = bench.size, dict[str, float](), 0.0
    for name, pause, workers in (
        ("items_per_second", 0.0, 0),
        ("open_items_per_second", OPEN_SECONDS, 0),
        ("served_items_per_second", 0.0, 1),
    ):
        if workers and spec.name != "leasebook":
            continue
        dsn = bench.fresh(spec)
        with Workers(spec, dsn, workers) as serving:
            serving.go()
            bench.wait_quiet()
            meter = Meter(bench.server.postmaster, serving.pids)
            figures[name] = call(spec, "hot", dsn, PRODUCERS, size.hot_seconds, pause)
            foreign = max(foreign, _foreign(bench, meter))
            serving.check()
    return Result("hot", spec.text, number, 0, foreign, figures)


def notify(bench: Bench, spec: Spec, number: int) -> Result:
    """What waking workers costs 64 producers that commit all at once."""
    figures, foreign = dict[str, float](), 0.0
    for name, ringing in (("ringing_per_second", 1), ("silent_per_second", 0)):
        dsn = bench.fresh(spec)
        bench.wait_quiet()
        meter = Meter(bench.server.postmaster)
        figures[name] = call(spec, "writers", dsn, WRITERS, bench.size.hot_seconds, ringing)
        foreign = max(foreign, _foreign(bench, meter))
    figures["ringing"] = figures["ringing_per_second"] / figures["silent_per_second"]
    return Result("notify", spec.text, number, 0, foreign, figures)


def _latency(measure: str, bench: Bench, spec: Spec, number: int, count: int) -> Result:
    dsn, jobs = bench.fresh(spec), bench.size.paced
    with Workers(spec, dsn, count) as workers:
        workers.go()
        time.sleep(IDLE_SECONDS)
        bench.wait_quiet()
        meter = Meter(bench.server.postmaster, workers.pids)
        call(spec, "paced", dsn, jobs, GAP_SECONDS)
        foreign = _foreign(bench, meter)
        until = time.monotonic() + LATE_SECONDS
        while workers.counter.runs < jobs and time.monotonic() < until:
            time.sleep(WATCH_SECONDS)
        taken = sorted(each / 1_000 for each in workers.counter.latencies)
        if len(taken) < jobs:
            raise workers.failure()
    figures = {f"start_p{share}": percentile(taken, share / 100) for share in (50, 95, 99)}
    return Result(measure, spec.text, number, jobs, foreign, figures)


def _foreign(bench: Bench, meter: Meter) -> float:
    return meter.read()[2] if bench.server.postmaster else 0.0
