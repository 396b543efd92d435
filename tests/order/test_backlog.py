"""A deep key beside others: what it costs them, and how it is worked off."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import Job, Policy
from leasebook.infra.caller_ports import Order
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Broke, Report, Succeeded
from leasebook.infra.worker.tick import READ_ON_JOBS, ROUNDS_MAX, Ask, Ticker
from tests.conformance.making import worker
from tests.support.traffic import until

from .duels import Meeting, ticker

#: How many jobs one key has; 100,000 in `make rehearse`.
DEEP = int(os.environ.get("LEASEBOOK_TEST_ORDER_DEEP", "10000"))
BULK = 10_000
DEPENDENTS = 10_000
SLOTS = 10

#: As if each had been enqueued by itself: nobody is born behind another.
COPIES = """
with logged as (
    insert into leasebook.job_events (job_id, version, at, kind, due_at, data)
    select gen_random_uuid(), 1, at, kind, due_at, data
      from leasebook.job_events
     cross join generate_series(1, %(copies)s)
     where job_id = %(id)s and version = 1
    returning job_id, event_id
)
insert into leasebook.jobs
select (jsonb_populate_record(j, jsonb_build_object('id', job_id, 'seq', event_id))).*
  from logged join leasebook.jobs as j on j.id = %(id)s
"""


@pytest.fixture
def one(database_dsn: str) -> Iterator[Ticker]:
    with closing(PostgresStore(database_dsn)) as store:
        store.enroll(worker("A"))
        yield ticker(store, "A")


def tick(one: Ticker, *reports: Report, slots: int = SLOTS) -> tuple[Job, ...]:
    return one.tick(Ask(reports, (), slots, full_sweep=True)).leased


def ids(jobs: tuple[Job, ...]) -> list[UUID]:
    return [job.id for job in jobs]


def accepted(dsn: str, *orders: Order) -> list[UUID | None]:
    with psycopg.connect(dsn) as caller:
        receipts = accept(Schema(), caller, orders)
    assert isinstance(receipts, tuple)
    return [receipt.id for receipt in receipts]


@pytest.mark.slow
@pytest.mark.acceptance("Q14")
@pytest.mark.case("C29")
@pytest.mark.parametrize("together", [True, False], ids=["in bulk", "one by one"])
def test_a_deep_key_does_not_hold_up_another(
    database_dsn: str, one: Ticker, together: bool
) -> None:
    """Its first job waits an hour for a retry.  What is blocked once is not looked at again."""
    deep, beside = Meeting(database_dsn, 1), Meeting(database_dsn, 2)
    [first] = accepted(database_dsn, Order(deep.spec(policy=Policy())))
    [job] = tick(one)
    assert job.id == first
    assert tick(one, Report(job, Broke("boom", 3_600.0))) == ()
    if together:
        for _ in range(DEEP // BULK):
            accepted(database_dsn, *(Order(deep.spec()) for _ in range(BULK)))
        most = 1
    else:
        [last] = accepted(database_dsn, Order(deep.spec()))
        with psycopg.connect(database_dsn) as connection:
            connection.execute(COPIES, {"copies": DEEP, "id": last})
        most = DEEP // ((ROUNDS_MAX - 1) * READ_ON_JOBS) + 1
    [other] = accepted(database_dsn, Order(beside.spec()))
    ticks = 1
    while ids(tick(one)) != [other]:
        ticks += 1
        assert ticks <= most + 1, "each tick blocks as many as it reads"
    [again] = accepted(database_dsn, Order(beside.spec(ordering_key="another")))
    assert ids(tick(one)) == [again], "now it is at once"


@pytest.mark.acceptance("Q14")
def test_all_who_come_after_one_job_go_on_in_one_tick(database_dsn: str, one: Ticker) -> None:
    meeting = Meeting(database_dsn, 1)
    [parent] = accepted(database_dsn, Order(meeting.spec()))
    child = meeting.spec
    accepted(
        database_dsn,
        *(Order(child(ordering_key=None, after=parent)) for _ in range(DEPENDENTS)),
    )
    [job] = tick(one)
    assert job.id == parent
    for _ in range(DEPENDENTS // ((ROUNDS_MAX - 1) * READ_ON_JOBS)):
        assert tick(one) == ()
    ticked = one.tick(Ask([Report(job, Succeeded())], (), SLOTS, full_sweep=True))
    assert ticked.freed == DEPENDENTS
    assert len(ticked.leased) == SLOTS


@pytest.mark.slow
@pytest.mark.acceptance("Q14")
def test_a_key_whose_producers_overlap_without_a_gap_is_served(
    database_dsn: str, one: Ticker
) -> None:
    """A worker that only tried would hardly ever find it quiet; in the end it waits for that."""
    meeting, stop = Meeting(database_dsn, 1), Event()

    def produce(number: int) -> int:
        draw, made = random.Random(number), 0
        with psycopg.connect(database_dsn) as caller:
            while not stop.is_set():
                accept(Schema(), caller, [Order(meeting.spec())])
                stop.wait(draw.uniform(0.01, 0.03))
                caller.commit()
                made += 1
        return made

    with ThreadPoolExecutor(6) as threads:
        producing = [threads.submit(produce, number) for number in range(6)]
        leased: list[Job] = []

        def serve() -> bool:
            stop.wait(0.01)
            leased.extend(tick(one))
            return bool(leased)

        try:
            until(serve, "the key is never served")
        finally:
            stop.set()
        assert sum(each.result() for each in producing) > 0
    print(f"by a barrier: {bool(one.keys.settled)}")
