"""What real workers did, run anew: the baseline is what was recorded."""

from __future__ import annotations

from datetime import datetime

import pytest

from leasebook.infra.postgres.history import PostgresHistory
from leasebook.projections.check import check
from leasebook.projections.replay.facts import gather
from leasebook.projections.streams import Step, by_job, steps
from leasebook.projections.whatif.history import History
from leasebook.projections.whatif.measures import agreement, reckon
from leasebook.projections.whatif.policy import Policy, parse
from leasebook.projections.whatif.reading import read
from leasebook.projections.whatif.world import simulate
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

KEYS = ("a.md", "b.md", "c.md")


def busy_minute(yard: Yard) -> None:
    """More work than slots, groups, keys, failures, rate limits, and a worker that is killed."""
    with yard.caller() as caller:
        held = app.gated.enqueue(caller, "go")
    killed = yard.worker("--concurrency", "2")
    yard.began(held)
    receipts = [held]
    for number in range(20):
        with yard.caller() as caller:
            receipts += app.quick.enqueue_many(caller, range(3))
            how = ("rate limited", "fail", "retry in", "")[number % 4]
            receipts.append(app.says.enqueue(caller, how))
            receipts.append(app.quick.enqueue(caller, number, priority=number % 3))
            key = KEYS[number % len(KEYS)]
            receipts.append(app.quick.enqueue(caller, number, ordering_key=key))
            for key in KEYS:
                app.stream.enqueue_many(caller, range(2), group_key=key)
        if number == 10:
            yard.worker("--concurrency", "3")
        if number == 15:
            killed.kill()
    yard.open("go")
    yard.all_over(receipts)
    eventually(lambda: yard.rows() == held_jobs(yard), "groups end")


def held_jobs(yard: Yard) -> int:
    return int(yard.sql("select count(*) from leasebook.jobs where held")[0][0])


@pytest.mark.fault
@pytest.mark.acceptance("E09")
def test_the_baseline_is_what_was_recorded(yard: Yard) -> None:
    """The same starts, runs, groups and items; every start at its time but for dispatch's noise.

    Dispatch takes as long beside a free slot as it did, so that most starts are exact; where jobs
    that are due at one time change places, they do so by no more than the longest such noise.
    """
    busy_minute(yard)
    log = PostgresHistory(yard.dsn)
    try:
        now = log.now()
        lives = [steps(stream) for stream in by_job(log.events(now))]
        facts = gather(log.audit(now))
    finally:
        log.close()
    begin = min(life[0].recorded.at for life in lives)
    middle = begin + (now - begin) / 3
    for since in (begin, middle):
        whole = [life for life in lives if life[-1].recorded.at >= since]
        _same(whole, read(whole, facts, since, now), since, now)


def _same(
    lives: list[tuple[Step, ...]], history: History, since: datetime, until: datetime
) -> None:
    baseline = simulate(history, Policy())
    was = reckon(lives, since, until)
    same = reckon([steps(stream) for stream in by_job(baseline)], since, until)
    found = agreement(was, same)
    assert found.recorded == found.simulated == found.both > 0
    sources = [each.source for each in history.births]
    sources += [each.source for each in history.carried]
    sources += [source for each in history.collected for _, source in each.items]
    noise = max(sum(taken.noise) for source in sources for taken in source.runs)
    assert found.furthest <= noise
    for measure in ("runs", "completed", "retries", "rate-limit hits", "groups run", "items run"):
        assert was.total.numbers[measure] == same.total.numbers[measure], measure
    assert list(check(baseline)) == []
    fewer = simulate(history, parse(["stream.group.window=30", "stream.group.max_hold=60"]))
    held = reckon([steps(stream) for stream in by_job(fewer)], since, until).total
    assert held.groups <= was.total.groups
