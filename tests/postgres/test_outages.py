"""What the store says when the database does not play along, and that it recovers by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Barrier
from time import monotonic
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from leasebook.domain import already_recorded, change
from leasebook.domain.commands import Complete, Enqueue
from leasebook.domain.job import JobSpec
from leasebook.infra.enrolment import Enrolment
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.connection import Link, told
from leasebook.infra.postgres.log import PostgresLog
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.statements import frame, workers
from leasebook.infra.postgres.store import PostgresStore
from tests.support.cutting_proxy import CuttingProxy

from .test_concurrency import WAIT_SECONDS, born, ending, job_id, leased, wanted

NAME = "leasebook under test"
ODD_DEFAULTS: dict[LiteralString, str] = {
    "default_transaction_isolation": "serializable",
    "search_path": "",
    "timezone": "Europe/Berlin",
    "datestyle": "German",
    "standard_conforming_strings": "on",
    "enable_indexscan": "off",
    "enable_nestloop": "off",
}
ENROLMENT = Enrolment("w-1", "w", "host", 1, 10, ("default", 'q "x"'), "1", ("work",))


def kill(dsn: str, name: str = NAME) -> int:
    """End every session of this name; how many there were."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity"
            " where application_name = %s and datname = current_database()",
            (name,),
        ).fetchone()
    assert row is not None
    return int(row[0])


def gone(dsn: str, name: str = NAME) -> bool:
    """Wait until no session has this name; whether that came in time."""
    give_up = monotonic() + WAIT_SECONDS
    with psycopg.connect(dsn, autocommit=True) as connection:
        while monotonic() < give_up:
            found = connection.execute(
                "select from pg_stat_activity"
                " where application_name = %s and datname = current_database()",
                (name,),
            )
            if found.fetchone() is None:
                return True
    return False


@pytest.mark.fault
@pytest.mark.case("C13")
def test_c13_a_killed_session_is_an_outage_and_the_next_call_connects_anew(
    database_dsn: str,
) -> None:
    store = PostgresStore(database_dsn, application_name=NAME)
    jobs = leased(store, 2)

    def write() -> None:
        with store.transaction() as tx:
            tx.append([ending(jobs[0])])
            assert kill(database_dsn) == 1
            tx.append([ending(jobs[1])])

    with pytest.raises(StoreUnavailable):
        write()
    with store.transaction() as tx:
        assert [len(tx.stream(job.id)) for job in jobs] == [2, 2]
        assert not tx.append([ending(job) for job in jobs])
    assert kill(database_dsn) == 1
    with pytest.raises(StoreUnavailable):
        store.beats()
    assert store.beats() == {}
    store.close()


@pytest.mark.fault
def test_after_a_loss_nothing_of_the_transaction_goes_to_another_session(
    database_dsn: str,
) -> None:
    store = PostgresStore(database_dsn, application_name=NAME)
    jobs = leased(store, 2)

    def write() -> None:
        with store.transaction() as tx:
            assert kill(database_dsn) == 1
            with pytest.raises(StoreUnavailable):
                tx.append([ending(jobs[0])])
            with pytest.raises(StoreUnavailable):
                tx.append([ending(jobs[1])])

    with pytest.raises(StoreUnavailable):
        write()
    with store.transaction() as tx:
        assert [len(tx.stream(job.id)) for job in jobs] == [2, 2]
    store.close()


@pytest.mark.fault
def test_a_session_killed_before_the_commit_is_an_outage(database_dsn: str) -> None:
    store = PostgresStore(database_dsn, application_name=NAME)
    jobs = leased(store, 1)

    def write() -> None:
        with store.transaction() as tx:
            tx.append([ending(jobs[0])])
            assert kill(database_dsn) == 1

    with pytest.raises(StoreUnavailable):
        write()
    with store.transaction() as tx:
        assert len(tx.stream(jobs[0].id)) == 2
    store.close()


@pytest.mark.fault
def test_a_commit_whose_answer_is_lost_is_recognised(database_dsn: str) -> None:
    with CuttingProxy(database_dsn) as proxy:
        store = PostgresStore(proxy.dsn)
        jobs = leased(store, 3)

        def write() -> None:
            with store.transaction() as tx:
                assert not tx.append([ending(job) for job in jobs])
                proxy.cut_next_commit = True

        with pytest.raises(StoreUnavailable):
            write()
        with store.transaction() as tx:
            again = [change(job, Complete(tx.at, job.version)) for job in jobs]
            missed = tx.append(again)
            assert {each.after.id for each in missed} == {job.id for job in jobs}
            assert all(already_recorded(each, tx.stream(each.after.id)) for each in missed)
        store.close()


def test_nobody_listens_there() -> None:
    store = PostgresStore("postgresql://127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable, match="OperationalError"):
        store.beats()
    with pytest.raises(StoreUnavailable), store.transaction():
        raise AssertionError("it must not begin")


def test_a_wait_for_a_lock_ends(database_dsn: str) -> None:
    first = PostgresStore(database_dsn)
    second = PostgresStore(database_dsn, settings=Settings(lock_seconds=0.1))
    jobs = leased(first, 1)
    with first.transaction() as tx:
        tx.append([ending(jobs[0])])
        with (
            pytest.raises(StoreUnavailable, match="LockNotAvailable"),
            second.transaction() as late,
        ):
            late.append([ending(jobs[0], failed=True)])
    with second.transaction() as tx:
        assert tx.load([jobs[0].id])[jobs[0].id].state == "done"
    first.close()
    second.close()


def test_a_statement_ends(database_dsn: str) -> None:
    first = PostgresStore(database_dsn)
    second = PostgresStore(database_dsn, settings=Settings(statement_seconds=0.1))
    jobs = leased(first, 1)
    with first.transaction() as tx:
        tx.append([ending(jobs[0])])
        with pytest.raises(StoreUnavailable, match="QueryCanceled"), second.transaction() as late:
            late.append([ending(jobs[0])])
    first.close()
    second.close()


def test_an_idle_transaction_is_ended_by_the_server(database_dsn: str) -> None:
    settings = Settings(idle_seconds=0.5)
    store = PostgresStore(database_dsn, application_name=NAME, settings=settings)

    def idle() -> None:
        with store.transaction() as tx:
            assert gone(database_dsn)
            tx.lead("duty")

    with pytest.raises(StoreUnavailable):
        idle()
    assert store.beats() == {}
    store.close()


def test_a_right_that_was_taken_away_and_a_standby_are_outages(database_dsn: str) -> None:
    store = PostgresStore(database_dsn)
    born(store, 1)
    role = f"leasebook_test_{token_hex(6)}"
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(f"create role {role}".encode())
        try:
            connection.execute(f"grant usage on schema leasebook to {role}".encode())
            poor = PostgresStore(f"{database_dsn}&options=-c%20role%3D{role}")
            with pytest.raises(StoreUnavailable, match="42501"):
                poor.beats()
            poor.close()
        finally:
            connection.execute(f"drop owned by {role}".encode())
            connection.execute(f"drop role {role}".encode())
    frozen = PostgresStore(f"{database_dsn}&options=-c%20default_transaction_read_only%3Don")
    with pytest.raises(StoreUnavailable, match="25006"), frozen.transaction() as tx:
        tx.claim(wanted(1))
    frozen.close()
    store.close()


def test_what_is_one_statement_is_sent_without_a_transaction_around_it(database_dsn: str) -> None:
    store = PostgresStore(database_dsn, application_name=NAME)

    def last() -> str:
        with psycopg.connect(database_dsn) as connection:
            row = connection.execute(
                "select query from pg_stat_activity"
                " where application_name = %s and datname = current_database()",
                (NAME,),
            ).fetchone()
        assert row is not None
        return str(row[0]).strip()

    store.enroll(ENROLMENT)
    assert last().startswith("with enrolled")
    assert store.beat("w-1")
    assert last().startswith("update")
    assert store.is_idle("w-1")
    assert last().startswith("select exists")
    store.outlook(["default"], ["work"], sample=1)
    assert last().startswith("select seen")
    store.leave("w-1")
    assert last().startswith("with gone")
    store.close()


def test_a_framed_session_keeps_our_settings_and_a_beat_changes_none(database_dsn: str) -> None:
    link = Link(database_dsn, Settings(), NAME, framed=True)

    def shown() -> dict[str, str]:
        return dict(
            link.once(frame.begin_look(Settings()), "select name, setting from pg_settings", {})
        )

    own = shown()
    assert (own["enable_seqscan"], own["TimeZone"], own["lock_timeout"]) == ("off", "UTC", "5000")
    assert own["default_transaction_isolation"] == "read committed"
    with psycopg.connect(database_dsn) as connection:
        connection.execute(
            "insert into leasebook.workers (id, name, host, pid, capacity, queues, code_version)"
            " values ('w-1', 'w', 'host', 1, 10, '{}', '')"
        )
    begin, beat = frame.begin_write(Settings()), workers.beat(Schema("leasebook"))
    assert link.once(begin, beat, {"worker": "w-1"}) == [("off",)]
    assert shown() == own, "only that beat does not wait for the disk"
    link.close()


@pytest.mark.parametrize("schema", ["leasebook", 'Jobs-"x"'])
def test_odd_defaults_of_the_database_change_nothing(database_dsn: str, schema: str) -> None:
    migrate(database_dsn, schema)
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        for name, value in ODD_DEFAULTS.items():
            command = sql.SQL("alter database {} set {} = {}")
            connection.execute(command.format(database, sql.SQL(name), sql.Literal(value)))
    store = PostgresStore(database_dsn, schema)
    store.enroll(ENROLMENT)
    assert store.beat("w-1")
    assert store.beats() == {"w-1": 1}
    jobs = leased(store, 2)
    summer = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    with store.transaction() as tx:
        spec = JobSpec(job_id(9), "work", "{}", tx.at)
        tx.append([change(None, Enqueue(tx.at, spec, summer + timedelta(days=3_650)))])
        assert tx.load([job_id(9)])[job_id(9)].due_at == summer + timedelta(days=3_650)
        assert tx.at.utcoffset() == timedelta(0)
        assert not tx.append([ending(job) for job in jobs])
    outlook = store.outlook(["default"], ["work"])
    assert outlook.next_due == summer + timedelta(days=3_650)
    assert outlook.at.utcoffset() == timedelta(0)
    store.leave("w-1")
    log = PostgresLog(database_dsn, schema)
    assert [each.event.kind for each in log.stream(jobs[0].id)] == [
        "enqueued",
        "leased",
        "completed",
    ]
    log.close()
    store.close()


def test_a_deadlock_is_an_outage_for_one_of_two(database_dsn: str) -> None:
    stores = [PostgresStore(database_dsn) for _ in range(2)]
    jobs = leased(stores[0], 2)
    both_hold_one = Barrier(2)

    def cross(number: int) -> str:
        try:
            with stores[number].transaction() as tx:
                tx.append([ending(jobs[number])])
                both_hold_one.wait(WAIT_SECONDS)
                tx.append([ending(jobs[1 - number])])
        except StoreUnavailable as error:
            return str(error)
        return ""

    with ThreadPoolExecutor() as pool:
        told_to = sorted(pool.map(cross, range(2)))
    assert told_to[0] == ""
    assert "40P01" in told_to[1]
    for store in stores:
        store.close()


def test_what_is_told_of_an_error_is_bounded() -> None:
    assert len(told(psycopg.OperationalError("x" * 10_000))) < 400
