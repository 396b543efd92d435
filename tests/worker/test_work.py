"""Plain work: what waited, what expires, what is rung for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import median
from typing import LiteralString

import psycopg
import pytest

from leasebook.domain.events import Failed, Leased
from leasebook.domain.values import Outcome
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

LISTENERS = """
select pid from pg_stat_activity
 where datname = current_database() and application_name = 'leasebook wake-up'
"""

QUESTIONS: LiteralString = """
select query_start from pg_stat_activity
 where datname = current_database() and application_name = 'leasebook worker'
"""


@pytest.mark.acceptance("Q03")
def test_q03_work_accepted_while_no_worker_runs_is_there_when_one_starts(yard: Yard) -> None:
    with yard.caller() as caller:
        receipts = [app.quick.enqueue(caller, n) for n in range(20)]
        app.stream.enqueue(caller, 7, group_key="k")
    assert yard.effects() == []
    yard.worker()
    assert yard.all_over(receipts) == {"done": 20}
    eventually(lambda: yard.rows() == 0, "the group has run too")
    assert [each.note for each in yard.effects() if each.note] == ["7"]


def test_a_job_that_waits_past_its_expiry_fails_without_a_run(yard: Yard) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=2)
    with yard.caller() as caller:
        blocker = app.gated.enqueue(caller, "go", priority=9)
        late = app.quick.enqueue(caller, 1, expires_at=soon)
        timely = app.quick.enqueue(caller, 2, expires_at=soon + timedelta(hours=1))
    worker = yard.worker("--concurrency", "1")
    yard.began(blocker)
    eventually(lambda: datetime.now(UTC) > soon, "the time has come")
    yard.open("go")
    job = yard.over(late)
    assert (job.outcome, job.held, job.starts) == (Outcome.EXPIRED, False, 0)
    last = yard.events(late)[-1]
    assert isinstance(last, Failed)
    assert last.lease is None
    assert yard.effects(late) == []
    assert yard.over(timely).state == "done"
    worker.tells("job failed", outcome="expired")
    assert worker.told("[IMPORTANT]") == []


@pytest.mark.fault
@pytest.mark.case("C15")
def test_c15_a_listener_whose_session_is_killed_listens_again(yard: Yard) -> None:
    """The poll is slow, so that only a ring can be quick."""
    worker = yard.worker("--poll", "20")
    [(listener,)] = eventually(lambda: yard.sql(LISTENERS), "it listens")

    def rings() -> list[float]:
        """How long jobs waited for their start, in seconds."""
        waits: list[float] = []
        for n in range(7):
            with yard.caller() as caller:
                receipt = app.quick.enqueue(caller, n)
            yard.over(receipt)
            [leased] = [each for each in yard.events(receipt) if isinstance(each, Leased)]
            waits.append((leased.at - yard.events(receipt)[0].at).total_seconds())
        return waits

    assert median(rings()) < 10.0
    yard.sql("select pg_terminate_backend(%s)", listener)
    with yard.caller() as caller:
        deaf = app.quick.enqueue(caller, 1)
    assert yard.over(deaf).state == "done"
    eventually(
        lambda: [pid for (pid,) in yard.sql(LISTENERS) if pid != listener], "it listens again"
    )
    assert median(rings()) < 10.0
    assert worker.stop() == 0


def test_a_full_worker_with_a_backlog_asks_the_database_little(yard: Yard) -> None:
    """No slot is free and jobs are due: there is nothing to ask for, and so nothing is asked."""
    with yard.caller() as caller:
        running = app.gated.enqueue(caller, "go")
        for n in range(5):
            app.quick.enqueue(caller, n)
    yard.worker("--concurrency", "1", "--poll", "0.5", "--heartbeat", "5", "--dead-after", "20")
    yard.began(running)
    seen: set[datetime] = set()
    with psycopg.connect(yard.dsn, autocommit=True) as connection:
        until = datetime.now(UTC) + timedelta(seconds=2)
        while datetime.now(UTC) < until:
            seen.update(moment for (moment,) in connection.execute(QUESTIONS))
    # A look each half second, each of two statements; a loop that never sleeps asks hundreds.
    assert len(seen) <= 16
    yard.open("go")
