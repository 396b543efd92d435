"""Rows in somebody else's hands, and rows that earlier releases wrote: nothing stops a worker."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import SerializationFailure

from leasebook.domain.commands import Complete
from leasebook.domain.events import Completed
from leasebook.domain.job import Job, JobSpec
from leasebook.domain.passing import Passing
from leasebook.domain.states import State
from leasebook.domain.values import Outcome, ReleaseReason
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.rows_of_runs import PostgresRows
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Broke, GaveBack, Report, Succeeded
from leasebook.infra.worker.order import free_stranded
from leasebook.infra.worker.tick import Ticked, Ticker
from tests.conformance.making import ids, job_id, new_spec
from tests.worker.ticking import tick, ticker

pytestmark = [pytest.mark.acceptance("Q14"), pytest.mark.fault]

SCHEMA = Schema("leasebook")
#: As an earlier release moves a job: it knows of no blocks.
MOVED_BY_AN_EARLIER_RELEASE = """
with moved as (
    update leasebook.jobs set version = version + 1, at = now(), due_at = now()
     where id = %s returning id, version, at, due_at
)
insert into leasebook.job_events (job_id, version, at, kind, due_at)
select id, version, at, 'rescheduled.v1', due_at from moved
"""


@pytest.fixture
def store(database_dsn: str) -> Iterator[PostgresStore]:
    store = PostgresStore(database_dsn, settings=Settings(lock_seconds=0.2))
    yield store
    store.close()


@pytest.fixture
def one(store: PostgresStore) -> Ticker:
    return ticker(store)


def put(dsn: str, *specs: JobSpec) -> None:
    with psycopg.connect(dsn) as caller:
        accept(SCHEMA, caller, [Order(spec) for spec in specs])


@contextmanager
def held(dsn: str, job: UUID) -> Generator[None]:
    """Somebody has the row of a job until the block ends."""
    with psycopg.connect(dsn) as other:
        other.execute("select from leasebook.jobs where id = %s for update", (job,))
        yield


def started(ticked: Ticked) -> list[UUID]:
    return [job.id for job in ticked.leased]


def ended(job: Job) -> Report:
    return Report(job, Succeeded())


def test_a_blocked_job_that_an_earlier_release_has_moved(database_dsn: str, one: Ticker) -> None:
    put(database_dsn, new_spec(1, ordering_key="k"), new_spec(2, ordering_key="k"), new_spec(3))
    with psycopg.connect(database_dsn) as earlier:
        earlier.execute(MOVED_BY_AN_EARLIER_RELEASE, (job_id(2),))
    first = tick(one, slots=10)
    assert sorted(started(first)) == ids(1, 3)
    assert started(tick(one, slots=8)) == []
    assert started(tick(one, *map(ended, first.leased), slots=9)) == ids(2)


def test_a_transaction_that_a_handler_left_open_holds_up_its_own_job(
    database_dsn: str, one: Ticker
) -> None:
    put(database_dsn, new_spec(1), new_spec(2), new_spec(3))
    reports = [ended(job) for job in tick(one, slots=10).leased]
    with held(database_dsn, job_id(1)):
        with pytest.raises(StoreUnavailable):
            tick(one, *reports)
        settled = tick(one, *reports).settled
        assert {each.after.id for each in settled.changes} == set(ids(2, 3))
        assert [each.job.id for each in settled.locked] == ids(1)
        again = tick(one, *settled.locked).settled  # type: ignore[arg-type]
        assert [each.job.id for each in again.locked] == ids(1)
    assert len(tick(one, *again.locked).settled.changes) == 1  # type: ignore[arg-type]


def test_a_waiting_job_in_somebody_elses_hands_holds_up_nobody(
    database_dsn: str, one: Ticker
) -> None:
    put(database_dsn, new_spec(1, ordering_key="k"), new_spec(2, ordering_key="k"))
    (first,) = tick(one, slots=10).leased
    with held(database_dsn, job_id(2)):
        ticked = tick(one, ended(first), slots=10)
        assert len(ticked.settled.changes) == 1
        assert [each.id for each in ticked.owed] == ids(1)
        assert started(tick(one, slots=10)) == []
    ticked = tick(one, slots=10)
    assert started(ticked) == ids(2)
    assert not ticked.owed


def test_many_who_come_after_one_job_hold_up_nobody(database_dsn: str, one: Ticker) -> None:
    put(database_dsn, new_spec(1))
    (parent,) = tick(one, slots=1).leased
    put(database_dsn, *(new_spec(10 + n, after=job_id(1)) for n in range(40)), new_spec(99))
    with held(database_dsn, job_id(1)):
        assert started(tick(one, slots=5)) == ids(99)
    one.parents = Passing[UUID]()  # Whom it had to pass over it tries again at once.
    assert len(tick(one, ended(parent), slots=5).leased) == 5


def test_a_completion_in_an_old_snapshot_misses_nobody(database_dsn: str, one: Ticker) -> None:
    put(database_dsn, new_spec(1))
    (parent,) = tick(one, slots=1).leased
    put(database_dsn, new_spec(2, after=job_id(1)))
    tick(one, slots=10)
    assert parent.lease is not None
    done = Complete(parent.at, parent.lease.token)
    with psycopg.connect(database_dsn) as handler:
        handler.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        handler.execute("select from leasebook.jobs")
        put(database_dsn, new_spec(3, after=job_id(1)))
        tick(one, slots=10)
        with pytest.raises(SerializationFailure):
            PostgresRows(SCHEMA).write(handler, parent, done)
        handler.rollback()
        PostgresRows(SCHEMA).write(handler, parent, done)
    assert started(tick(one, slots=10)) == ids(2, 3)


def test_a_completed_run_that_is_stopped_was_completed(database_dsn: str, one: Ticker) -> None:
    put(database_dsn, new_spec(1))
    (job,) = tick(one, slots=1).leased
    assert job.lease is not None
    with psycopg.connect(database_dsn) as handler:
        PostgresRows(SCHEMA).write(handler, job, Complete(job.at, job.lease.token))
    (change,) = tick(one, Report(job, GaveBack(ReleaseReason.SHUTDOWN))).settled.changes
    assert isinstance(change.events[0], Completed)


def test_who_waits_for_a_job_that_an_earlier_release_held_is_let_go(
    database_dsn: str, store: PostgresStore, one: Ticker
) -> None:
    put(database_dsn, new_spec(1), new_spec(2))
    (parent, _) = tick(one, slots=10).leased
    put(database_dsn, new_spec(3, after=job_id(1)))
    tick(one, slots=10)
    forget: Any = "update leasebook.jobs set has_waiter = false where id = %s"
    with psycopg.connect(database_dsn) as earlier:
        earlier.execute(forget, (job_id(1),))
    tick(one, Report(parent, Broke("boom", 0.0, retry=False)), slots=10)
    free_stranded(store)
    tick(one, slots=10)
    with store.transaction() as tx:
        job = tx.load(ids(3))[job_id(3)]
    assert (job.state, job.held, job.outcome) == (State.FAILED, True, Outcome.PARENT_FAILED)
