"""Bulk enqueues of overlapping keys beside workers that end the very same jobs: no deadlock."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import OnConflict, change
from leasebook.domain.commands import Complete, Fail, TakeLease
from leasebook.domain.job import Job, JobSpec
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import Claim
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.holders import EPOCH
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore

WRITERS, WORKERS, KEYS, DELAYED, BATCH = 8, 2, 700, 200, 500
#: The trial as it was reported ran for 60 seconds.
SECONDS = float(os.environ.get("LEASEBOOK_TEST_CONTENTION_SECONDS", "6"))


def batch(number: int, turn: int) -> list[Order]:
    """500 of the 700 keys in an order of this writer's own: due ones to keep, delayed ones to move.

    (A job that runs is not moved, and refuses the whole batch; so the delayed ones wait long.)
    """
    draw = random.Random(1_000_003 * number + turn)
    orders: list[Order] = []
    for key in draw.sample(range(KEYS), BATCH):
        spec = JobSpec(UUID(int=draw.getrandbits(128)), "work", "{}", EPOCH, unique_key=f"k{key}")
        wish = OnConflict.REPLACE if key < DELAYED else OnConflict.KEEP
        delay = 3600.0 + turn if key < DELAYED else 0.0
        request = f"r{turn} {key}" if key % 4 == 0 else None
        orders.append(Order(spec, None, delay, wish, request))
    return orders


def write(dsn: str, number: int, until: float) -> dict[str, int]:
    """Enqueue batch after batch, rolling some back; how many were made, or met a holder."""
    made = {"created": 0, "stood": 0}
    with psycopg.connect(dsn) as connection:
        turn = 0
        while monotonic() < until:
            turn += 1
            receipts = accept(Schema(), connection, batch(number, turn))
            assert isinstance(receipts, tuple)
            made["created"] += sum(receipt.created for receipt in receipts)
            made["stood"] += sum(not receipt.created for receipt in receipts)
            connection.rollback() if turn % 7 == 0 else connection.commit()
    return made


def work(dsn: str, name: str, stop: Event) -> int:
    """End what was leased and lease the next, in one transaction, as a tick does."""
    store, leased, ended = PostgresStore(dsn), list[Job](), 0
    while not stop.is_set() or leased:
        with store.transaction() as tx:
            ends = [
                change(job, Complete(tx.at, job.lease.token))
                if number % 5
                else change(job, Fail(tx.at, job.lease.token, "no"))
                for number, job in enumerate(leased)
                if job.lease
            ]
            assert not tx.append(ends)
            ended += len(ends)
            picked = () if stop.is_set() else tx.claim(Claim(("default",), ("work",), 200, 1))
            takes = [change(job, TakeLease(tx.at, name)) for job in picked]
            assert not tx.append(takes)
        leased = [each.after for each in takes]
    store.close()
    return ended


@pytest.mark.case("C40")
def test_no_deadlock_between_bulk_enqueues_and_acknowledgements(database_dsn: str) -> None:
    stop, until = Event(), monotonic() + SECONDS
    with ThreadPoolExecutor(WRITERS + WORKERS) as threads:
        working = [threads.submit(work, database_dsn, f"w{n}", stop) for n in range(WORKERS)]
        writing = [threads.submit(write, database_dsn, n, until) for n in range(WRITERS)]
        try:
            totals = [future.result() for future in writing]
        finally:
            stop.set()
        ended = sum(future.result() for future in working)
    assert ended > 0
    assert sum(total["created"] for total in totals) > 0
    assert sum(total["stood"] for total in totals) > 0
    with psycopg.connect(database_dsn) as connection:
        row = connection.execute(
            "select deadlocks, (select count(*) - count(distinct unique_key) from leasebook.jobs)"
            " from pg_stat_database where datname = current_database()"
        ).fetchone()
    assert row == (0, 0)
