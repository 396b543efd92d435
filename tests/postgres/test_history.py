"""The live log as a replay reads it: the same as in one piece, bounded, and harmless."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import UnknownEvent
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.history import OldSnapshot, PostgresHistory
from leasebook.infra.postgres.reader import PostgresReader
from leasebook.infra.postgres.schema.errors import SchemaIncomplete
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.statements import frame, replaying
from leasebook.infra.replay_ports import TooManyEvents
from tests.postgres.planned import scans
from tests.support.incident import incident
from tests.support.lives import at, job_id

LATER = at(10_000)


@pytest.fixture
def dsn(database_dsn: str) -> str:
    incident(database_dsn)
    return database_dsn


@pytest.fixture
def history(dsn: str) -> Iterator[PostgresHistory]:
    made = PostgresHistory(dsn, piece_rows=3)
    yield made
    made.close()


def test_pieces_add_up_to_the_log(history: PostgresHistory, dsn: str) -> None:
    reader = PostgresReader(dsn)
    with reader.snapshot() as snapshot:
        whole = list(snapshot.log())
    reader.close()
    assert list(history.events(LATER)) == whole
    assert list(history.events(LATER, since=at(-1))) == whole
    assert history.known_from is None


def test_nothing_later_is_read(history: PostgresHistory) -> None:
    found = list(history.events(at(12)))
    assert {each.job_id for each in found} == set(map(job_id, (1, 2, 3, 4)))
    assert max(each.at for each in found) == at(12)
    assert list(history.events(at(-1))) == []


def test_what_had_completed_before_is_left_out(history: PostgresHistory) -> None:
    def jobs(since: float) -> set[UUID]:
        return {each.job_id for each in history.events(LATER, since=at(since))}

    assert jobs(20) == set(map(job_id, range(1, 6)))
    assert jobs(20.001) == set(map(job_id, range(2, 6)))
    assert jobs(41.001) == {job_id(2), job_id(3), job_id(5)}, "held and waiting ones stay"
    assert all(each.version == 1 for each in list(history.events(LATER, since=at(21)))[:1])


def test_one_job(history: PostgresHistory) -> None:
    kinds = [each.event.kind for each in history.events(at(12), job=job_id(1))]
    assert kinds == ["enqueued", "leased", "lease_expired", "leased"]
    assert list(history.events(at(12), job=job_id(99))) == []


def test_a_budget_of_events(dsn: str) -> None:
    history = PostgresHistory(dsn, events_max=4)
    with pytest.raises(TooManyEvents, match="more than 4 events to read"):
        list(history.events(LATER))
    assert len(list(history.events(LATER, job=job_id(2)))) == 3
    history.close()


def test_the_audit_log_in_order_of_time(history: PostgresHistory, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into leasebook.audit_log (kind, detail) values ('imported', '{}')"
        )
    lines = history.audit(LATER)
    assert [line.kind for line in lines] == [
        "worker_started",
        "worker_died",
        "worker_started",
        "late_write_refused",
    ]
    assert lines[0].detail["capacity"] == 1
    assert (lines[3].job_id, lines[3].worker, lines[3].detail["lease"]) == (job_id(1), "ada#1", 2)
    assert [line.at for line in history.audit(at(10))] == [at(-60), at(10)]


def test_an_old_snapshot_is_not_made_worse(history: PostgresHistory, dsn: str) -> None:
    history.require_calm(0.0)
    with psycopg.connect(dsn) as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1")
        with pytest.raises(OldSnapshot, match=f"pid {other.info.backend_pid} .*--anyway"):
            history.require_calm(0.0)
        history.require_calm(3_600.0)


@pytest.mark.fault
def test_a_log_that_somebody_has_locked_is_not_waited_for(dsn: str) -> None:
    history = PostgresHistory(dsn, settings=Settings(lock_seconds=0.05, prepare_after=None))
    with psycopg.connect(dsn) as other:
        other.execute("lock table leasebook.job_events in access exclusive mode")
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            list(history.events(LATER))
        other.rollback()
    assert len(list(history.events(LATER))) == 16
    history.close()


def test_every_piece_is_a_transaction_of_its_own(history: PostgresHistory, dsn: str) -> None:
    """Between two pieces nothing is kept from vacuum."""
    events = history.events(LATER)
    next(events)
    with psycopg.connect(dsn) as other:
        rows = other.execute(
            "select state, backend_xmin from pg_stat_activity"
            " where datname = current_database() and application_name = 'leasebook replay'"
        ).fetchall()
    assert rows == [("idle", None)]
    assert len(list(events)) == 15


def test_nothing_can_be_written(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(frame.begin_look(Settings()).encode())
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("delete from leasebook.group_inbox")


@pytest.mark.unchecked("a later release wrote into this log")
def test_an_event_of_a_later_release(history: PostgresHistory, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into leasebook.job_events (job_id, version, at, kind)"
            " values (%s, 2, clock_timestamp(), 'paused.v1')",
            (job_id(5),),
        )
    with pytest.raises(UnknownEvent, match="paused"):
        list(history.events(history.now()))


@pytest.mark.unchecked("20,000 events that belong to no life")
def test_pieces_go_by_the_primary_key(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into leasebook.job_events (job_id, version, at, kind)"
            " select gen_random_uuid(), v, clock_timestamp(), 'enqueued.v1'"
            " from generate_series(1, 20000) as v"
        )
        connection.execute("analyze leasebook.job_events")
        for setting in frame.begin_look(Settings()).split(";\n")[1:-1]:
            connection.execute(setting.replace("set local", "set").encode())
        params = {
            "job": UUID(int=0), "version": 0, "limit": 500, "until": LATER, "since": at(1),
                "upto": None,
        }  # fmt: skip
        found = scans(connection, replaying.events(Schema()), params)
    events = [each for each in found if each.table == "job_events"]
    assert {each.index for each in events} == {"job_events_pkey"}
    assert sum(each.read for each in events) <= 1_100


def test_a_schema_that_is_not_there(empty_database_dsn: str) -> None:
    history = PostgresHistory(empty_database_dsn)
    with pytest.raises(SchemaIncomplete):
        history.require_schema()
    history.close()
