"""Order by brute force: a minute of everybody at once, and then nothing is left or out of order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import JobSpec, OnHold, Policy
from leasebook.infra.app.ids import new_id
from leasebook.infra.caller_ports import Order
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.holders import EPOCH
from leasebook.infra.postgres.reader import PostgresReader
from leasebook.infra.postgres.schema.name import Schema
from leasebook.projections.check import KeptRow
from tests.support.traffic import until

from .contention import Producer, Worker

PRODUCERS, WORKERS = 6, 4
SECONDS = float(os.environ.get("LEASEBOOK_TEST_ORDER_SECONDS", "8"))
#: The case as it was reported had 300 jobs; so has `make rehearse`.
JOBS, MANY = min(300, int(SECONDS * 12)), 12

#: What can be worked on at once, or is collected at once.
RUNNABLE = """
select from leasebook.jobs where not held and blocked_by is null
 union all
select from leasebook.group_inbox
 limit 1
"""


@pytest.mark.slow
@pytest.mark.acceptance("Q14", "E04", "I8")
def test_four_workers_and_six_producers_for_a_while(database_dsn: str) -> None:
    over, finished = Event(), Event()
    with ThreadPoolExecutor(PRODUCERS + WORKERS) as threads:
        making = [
            threads.submit(Producer(database_dsn, number, over).run) for number in range(PRODUCERS)
        ]
        working = [
            threads.submit(Worker(database_dsn, f"w{number}", over, finished.is_set).run)
            for number in range(WORKERS)
        ]
        try:
            over.wait(SECONDS)
            over.set()
            made = sum((each.result() for each in making), Counter[str]())
            until(lambda: not _unfinished(database_dsn), "some jobs never end")
        finally:
            over.set()
            finished.set()
        seen = sum((each.result() for each in working), Counter[str]())
    print(f"{dict(made)} {dict(seen)}")
    assert _deadlocks(database_dsn) == 0
    wanted = {"committed", "rolled back", "savepoint", "after", "moved or kept"}
    assert wanted <= set(made), f"{wanted - set(made)} never happened"
    assert {"leased", "freed", "swept"} <= set(seen), seen


@pytest.mark.slow
@pytest.mark.acceptance("Q14")
@pytest.mark.case("C28")
def test_twelve_workers_and_one_key_whose_head_starts_later(database_dsn: str) -> None:
    """The ready ones wait for it, as the docs say, and then nobody gets into another's way."""
    given: dict[str, Any] = {"policy": Policy(retries=9, lease=0.5), "on_hold": OnHold.SKIP}
    with psycopg.connect(database_dsn) as caller:
        for number in range(JOBS):
            spec = JobSpec(new_id(), "work", "1", EPOCH, ordering_key="k", **given)
            accept(Schema(), caller, [Order(spec, None, 0.0 if number else 0.5)])
    over, finished = Event(), Event()
    with ThreadPoolExecutor(MANY) as threads:
        working = [
            threads.submit(Worker(database_dsn, f"w{number}", over, finished.is_set).run)
            for number in range(MANY)
        ]
        try:
            until(lambda: not _unfinished(database_dsn), "some jobs never end")
        finally:
            over.set()
            finished.set()
        seen = sum((each.result() for each in working), Counter[str]())
    assert seen["unavailable"] == 0
    assert seen["leased"] >= JOBS
    assert _deadlocks(database_dsn) == 0


def _deadlocks(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        asked = "select deadlocks from pg_stat_database where datname = current_database()"
        row = connection.execute(asked).fetchone()
    assert row is not None
    return int(row[0])


def _unfinished(dsn: str) -> bool:
    """Whether there are jobs that wait for no held one, directly or through others."""
    with psycopg.connect(dsn) as connection:
        if connection.execute(RUNNABLE).fetchone():
            return True
    reader = PostgresReader(dsn)
    try:
        with reader.snapshot() as snapshot:
            rows = snapshot.rows()
    finally:
        reader.close()
    return not all(_behind_held(rows, kept) for kept in rows.values())


def _behind_held(rows: Mapping[UUID, KeptRow], kept: KeptRow) -> bool:
    """Whether the job is held, or waits for one that is."""
    seen: KeptRow | None = kept
    while seen is not None and not seen.row[1].held:
        blocker = seen.row[1].blocked_by
        seen = None if blocker is None else rows.get(blocker)
    return seen is not None
