"""The migration makes the same complete schema under any name, by any way, in any session."""

from __future__ import annotations

import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory
from psycopg import sql

from leasebook import migrations
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.dsn import InvalidDsn
from leasebook.infra.postgres.schema.check import check_schema
from leasebook.infra.postgres.schema.errors import MigrationFailed, SchemaNewer
from leasebook.infra.postgres.schema.migrate import migrate, migrate_sql
from leasebook.infra.postgres.schema.name import Schema
from tests.support.schemas import ODD_NAMES, role, snapshot, with_options

MIGRATORS = 8
MIGRATOR = """
import sys
from leasebook.infra.postgres.schema.migrate import migrate, migrate_sql
migrate_sql()
print("ready", flush=True)
sys.stdin.readline()
migrate(sys.argv[1], sys.argv[2])
"""


@pytest.mark.acceptance("A01")
def test_one_migration_makes_everything(empty_database_dsn: str) -> None:
    migrate(empty_database_dsn)
    assert check_schema(empty_database_dsn, Schema()) == ()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_with_an_empty_search_path(empty_database_dsn: str, name: str) -> None:
    dsn = with_options(empty_database_dsn, "search_path=")
    migrate(dsn, name)
    migrate(dsn, name)
    assert check_schema(dsn, Schema(name)) == ()


def test_two_schemas_in_one_database(empty_database_dsn: str) -> None:
    migrate(empty_database_dsn, "one")
    migrate(empty_database_dsn, "One")
    assert check_schema(empty_database_dsn, Schema("one")) == ()
    assert check_schema(empty_database_dsn, Schema("One")) == ()


def test_sessions_with_unhelpful_defaults(empty_database_dsn: str) -> None:
    dsn = with_options(
        empty_database_dsn,
        "default_transaction_isolation=serializable",
        "default_transaction_read_only=on",
        "standard_conforming_strings=off",
    )
    migrate(dsn, "jobs")
    assert check_schema(empty_database_dsn, Schema("jobs")) == ()


def test_a_search_path_with_functions_like_the_servers(empty_database_dsn: str) -> None:
    with psycopg.connect(empty_database_dsn) as connection:
        connection.execute(
            "create schema trap; create function trap.clock_timestamp() returns timestamptz"
            " language sql as 'select null::timestamptz'; create domain trap.json as text"
        )
    migrate(with_options(empty_database_dsn, "search_path=trap,pg_catalog"))
    assert check_schema(empty_database_dsn, Schema()) == ()


@pytest.mark.parametrize("name", ["leasebook", *ODD_NAMES])
def test_the_printed_sql_makes_the_same_schema(empty_database_dsn: str, name: str) -> None:
    with psycopg.connect(empty_database_dsn, autocommit=True) as connection:
        connection.execute(migrate_sql(name).encode())
    assert check_schema(empty_database_dsn, Schema(name)) == ()
    printed = snapshot(empty_database_dsn, name)
    with psycopg.connect(empty_database_dsn) as connection:
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))
    migrate(empty_database_dsn, name)
    assert printed == snapshot(empty_database_dsn, name)


def test_the_printed_sql_counts_as_migrated(empty_database_dsn: str) -> None:
    with psycopg.connect(empty_database_dsn, autocommit=True) as connection:
        connection.execute(migrate_sql().encode())
    before = snapshot(empty_database_dsn, "leasebook")
    migrate(empty_database_dsn)
    assert snapshot(empty_database_dsn, "leasebook") == before


def test_many_processes_at_once(empty_database_dsn: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATOR, empty_database_dsn, "Jobs-x"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(MIGRATORS)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * MIGRATORS, errors
    assert check_schema(empty_database_dsn, Schema("Jobs-x")) == ()


def test_many_threads_at_once(empty_database_dsn: str) -> None:
    with ThreadPoolExecutor(MIGRATORS) as threads:
        for done in [threads.submit(migrate, empty_database_dsn) for _ in range(MIGRATORS)]:
            done.result()
    assert check_schema(empty_database_dsn, Schema()) == ()


def test_a_role_that_may_create_in_the_schema_only(empty_database_dsn: str) -> None:
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(empty_database_dsn, name) as migrator:
        with psycopg.connect(empty_database_dsn) as connection:
            connection.execute("create schema jobs")
            connection.execute(sql.SQL("grant usage, create on schema jobs to {}").format(migrator))
        dsn = with_options(empty_database_dsn, f"role={name}")
        migrate(dsn, "jobs")
        migrate(dsn, "jobs")
        assert check_schema(dsn, Schema("jobs")) == ()
        with pytest.raises(MigrationFailed, match="Migrate as the schema's owner") as no:
            migrate(dsn, "other")
    assert no.value.sqlstate == "42501"


def test_a_failed_migration_leaves_nothing(empty_database_dsn: str) -> None:
    with psycopg.connect(empty_database_dsn) as connection:
        connection.execute("create schema jobs; create table jobs.workers (id text)")
    before = snapshot(empty_database_dsn, "jobs")
    with pytest.raises(MigrationFailed, match="schema of its own") as taken:
        migrate(empty_database_dsn, "jobs")
    assert taken.value.sqlstate == "42P07"
    assert "create table" not in str(taken.value).lower()
    assert snapshot(empty_database_dsn, "jobs") == before


def test_a_newer_schema_is_left_alone(database_dsn: str) -> None:
    with psycopg.connect(database_dsn) as connection:
        connection.execute("update leasebook.leasebook_version set version_num = '9999'")
    with pytest.raises(SchemaNewer, match="at revision 9999") as newer:
        migrate(database_dsn)
    assert newer.value.code == "schema_newer"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql+psycopg://me:secret@host/db",
        "postgresql://me:secret%zz@host/db",
        "postgresql://me:se@secret@host/db",
        "postgresql://me:secret/x@host/db",
        "host=h password='secret",
        "secret",
    ],
)
def test_a_dsn_is_not_told(dsn: str) -> None:
    with pytest.raises(InvalidDsn) as refused:
        migrate(dsn)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as away:
        migrate(f"host={tmp_path} user=me password=secret dbname=db")
    assert "secret" not in str(away.value)


def test_the_released_revisions_are_listed() -> None:
    script = ScriptDirectory(Path(migrations.__file__).parent)
    oldest_first = [revision.revision for revision in script.walk_revisions()][::-1]
    assert oldest_first == list(migrations.REVISIONS)
