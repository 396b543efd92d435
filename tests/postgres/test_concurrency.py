"""Two workers at once on PostgreSQL: who waits, who steps aside, and that nobody deadlocks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from time import monotonic
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import change
from leasebook.domain.commands import Complete, Enqueue, Fail, TakeLease
from leasebook.domain.job import Job, JobSpec
from leasebook.domain.log import Change
from leasebook.infra.ports import Claim
from leasebook.infra.postgres.store import PostgresStore
from leasebook.projections.row import FORMAT

WAIT_SECONDS = 30.0


def job_id(number: int) -> UUID:
    return UUID(int=0x01900000_0000_7000_8000_000000000000 + number)


def born(store: PostgresStore, count: int) -> list[Job]:
    """Jobs 0 to count, due now."""
    with store.transaction() as tx:
        specs = [JobSpec(job_id(number), "work", "{}", tx.at) for number in range(count)]
        changes = [change(None, Enqueue(tx.at, spec)) for spec in specs]
        assert not tx.append(changes)
    return [each.after for each in changes]


def leased(store: PostgresStore, count: int) -> list[Job]:
    """Jobs 0 to count, leased to w."""
    jobs = born(store, count)
    with store.transaction() as tx:
        changes = [change(job, TakeLease(tx.at, "w")) for job in jobs]
        assert not tx.append(changes)
    return [each.after for each in changes]


def ending(job: Job, failed: bool = False) -> Change:
    assert job.lease is not None
    at = job.at + timedelta(seconds=1)
    if failed:
        return change(job, Fail(at, job.lease.token, "no", 60))
    return change(job, Complete(at, job.lease.token))


def wanted(limit: int, suspects: int = 1) -> Claim:
    return Claim(("default",), ("work",), limit, suspects)


def waits(dsn: str) -> bool:
    """Wait until some session waits for a lock; whether that came in time."""
    give_up = monotonic() + WAIT_SECONDS
    with psycopg.connect(dsn, autocommit=True) as connection:
        while monotonic() < give_up:
            found = connection.execute(
                "select from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock'"
            )
            if found.fetchone() is not None:
                return True
    return False


def test_the_second_of_two_writers_waits_and_misses(database_dsn: str) -> None:
    first, second = PostgresStore(database_dsn), PostgresStore(database_dsn)
    jobs = leased(first, 3)

    def late() -> Sequence[Change]:
        with second.transaction() as tx:
            before = tx.at
            missed = tx.append([ending(job) for job in jobs])
            assert tx.at > before, "the time is read again after the wait"
            return missed

    with ThreadPoolExecutor() as pool:
        with first.transaction() as tx:
            assert not tx.append([ending(jobs[1], failed=True)])
            answer: Future[Sequence[Change]] = pool.submit(late)
            assert waits(database_dsn)
        assert [each.after.id for each in answer.result(WAIT_SECONDS)] == [jobs[1].id]
    with second.transaction() as tx:
        assert [len(tx.stream(job.id)) for job in jobs] == [3, 3, 3]
        assert tx.load([jobs[1].id])[jobs[1].id].state == "retry-wait"
    first.close()
    second.close()


def test_batches_in_opposite_order_do_not_deadlock(database_dsn: str) -> None:
    """Both batches end some jobs and move others, and each does it the other way round."""
    stores = [PostgresStore(database_dsn) for _ in range(2)]
    rounds, size = 20, 40
    jobs = leased(stores[0], rounds * size)
    barrier = Barrier(2)

    def write(number: int) -> int:
        hits = 0
        for start in range(0, len(jobs), size):
            batch = jobs[start : start + size]
            changes = [ending(job, failed=index % 2 == number) for index, job in enumerate(batch)]
            barrier.wait(WAIT_SECONDS)
            with stores[number].transaction() as tx:
                missed = tx.append(changes if number else changes[::-1])
            hits += len(changes) - len(missed)
        return hits

    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(write, number) for number in range(2)]
        assert sum(answer.result(WAIT_SECONDS) for answer in answers) == len(jobs)
    for store in stores:
        store.close()


def test_a_claim_locks_no_more_than_its_limit(database_dsn: str) -> None:
    first, second = PostgresStore(database_dsn), PostgresStore(database_dsn)
    jobs = born(first, 30)
    with first.transaction() as tx, second.transaction() as other:
        mine = tx.claim(wanted(10))
        assert [job.id for job in mine] == [job.id for job in jobs[:10]]
        assert [job.id for job in other.claim(wanted(30))] == [job.id for job in jobs[10:]]
    first.close()
    second.close()


@pytest.mark.parametrize("version", range(1, FORMAT + 3))
def test_a_row_of_a_newer_format_is_left_alone(database_dsn: str, version: int) -> None:
    store = PostgresStore(database_dsn)
    born(store, 2)
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(
            "update leasebook.jobs set format = %s where id = %s", (version, job_id(0))
        )
    with store.transaction() as tx:
        found = [job.id for job in tx.claim(wanted(10))]
    assert found == [job_id(number) for number in range(2) if number or version <= FORMAT]
    store.close()
