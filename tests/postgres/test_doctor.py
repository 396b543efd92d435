"""The doctor on a real server: what it must see there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import psycopg
import pytest
from click.testing import CliRunner

from leasebook.infra.cli.commands import main
from leasebook.infra.postgres.doctor import examine
from leasebook.infra.postgres.schema.name import Schema
from leasebook.projections.doctor import diagnose
from leasebook.projections.health import Facts, Finding, Thresholds

SCHEMA = Schema("leasebook")
#: More than a client's and a server's socket buffers take.
FLOOD = """
do $$ begin
    for n in 1..4000 loop
        perform pg_catalog.pg_notify('flood', pg_catalog.repeat('x', 7900) || n);
        commit;
    end loop;
end $$
"""
DEADLINE_SECONDS = 30.0


def found(facts: Facts) -> dict[str, Finding]:
    return {each.code: each for each in diagnose(facts, Thresholds(snapshot_seconds=0.0))}


def eventually(ask: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not ask():
        assert time.monotonic() < deadline, what


@pytest.mark.case("C23")
def test_an_idle_session_that_holds_a_snapshot_is_named_by_its_pid(database_dsn: str) -> None:
    with psycopg.connect(database_dsn) as idle:
        idle.execute("set transaction isolation level repeatable read")
        idle.execute("select count(*) from leasebook.jobs")
        result = CliRunner().invoke(main, ["doctor", "--dsn", database_dsn, "--old", "0", "--json"])
        assert result.exit_code == 1
        document = json.loads(result.stdout)
        assert not document["healthy"]
        told = {each["code"]: each for each in document["findings"]}
        assert f"pid {idle.info.backend_pid} " in told["old_snapshot"]["seen"]
        assert "idle in transaction" in told["old_snapshot"]["seen"]
        plain = CliRunner().invoke(main, ["doctor", "--dsn", database_dsn, "--old", "0"])
        assert f"pg_terminate_backend({idle.info.backend_pid})" in plain.stdout
        # Not old yet by the usual measure.
        usual = CliRunner().invoke(main, ["doctor", "--dsn", database_dsn, "--json"])
        assert "old_snapshot" not in usual.stdout


@pytest.mark.case("C18")
def test_a_listener_whose_client_reads_no_more_is_named_by_its_pid(database_dsn: str) -> None:
    with (
        psycopg.connect(database_dsn, autocommit=True) as stuck,
        psycopg.connect(database_dsn, autocommit=True) as other,
    ):
        pid = stuck.info.backend_pid
        stuck.execute("listen flood")
        other.execute(FLOOD)

        def waits() -> bool:
            row = other.execute(
                "select wait_event = 'ClientWrite' from pg_stat_activity where pid = %s", (pid,)
            ).fetchone()
            return row == (True,)

        eventually(waits, "the server waits for the client")
        finding = found(examine(database_dsn, SCHEMA))["stuck_client"]
        assert f"pid {pid} " in finding.seen
        assert "stopped or hangs" in finding.remedy
        other.execute("select pg_terminate_backend(%s)", (pid,))


def test_settings_indexes_statistics_and_dead_rows(database_dsn: str) -> None:
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute("alter table leasebook.jobs set (autovacuum_enabled = off)")
        connection.execute("drop index leasebook.jobs_claim")
        connection.execute(
            "insert into leasebook.checkpoints select n::text, now() from"
            " generate_series(1, 60000) as n"
        )
        connection.execute("delete from leasebook.checkpoints")
        connection.execute("select pg_stat_force_next_flush()")

        def flushed() -> bool:
            return {"dead_rows", "stale_statistics"} <= found(examine(database_dsn, SCHEMA)).keys()

        connection.execute("alter table leasebook.checkpoints set (autovacuum_enabled = off)")
        eventually(flushed, "the statistics have arrived")
    told = found(examine(database_dsn, SCHEMA))
    assert "jobs_claim" in told["schema"].seen
    assert "autovacuum_of_table" in told
    assert "leasebook.checkpoints" in told["dead_rows"].seen


def test_a_database_without_leasebook_is_told_apart(empty_database_dsn: str) -> None:
    # How the server is set up for tests (no autovacuum, say) is not this test's business.
    codes = set(found(examine(empty_database_dsn, SCHEMA)))
    assert {code for code in codes if not code.startswith("autovacuum")} == {"schema"}


def test_workers_that_fell_silent_and_work_that_waits(database_dsn: str) -> None:
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(
            "insert into leasebook.workers (id, name, host, pid, capacity, queues, code_version,"
            " beat_at) values ('w#1', 'w', 'h', 1, 1, '{}', '', now() - interval '1 hour')"
        )
    facts = examine(database_dsn, SCHEMA)
    assert (list(facts.silent_workers), facts.living_workers) == (["w#1"], 0)
    assert "w#1" in found(facts)["silent_worker"].seen
