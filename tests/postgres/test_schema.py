"""Whatever is missing or wrong in a schema is found and named."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from leasebook.domain.errors import InvalidValue, LeasebookError
from leasebook.infra.postgres.schema.check import check_schema, require_schema
from leasebook.infra.postgres.schema.errors import SchemaIncomplete, SchemaNewer
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.schema.tables import TABLES, Part
from leasebook.infra.postgres.statements import catalog
from tests.support.schemas import role, with_options

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Schema("Jobs-x")
PARTS = [part for table in TABLES for part, _ in table.parts()]

DROPS = {
    "table": "drop table {table}",
    "column": "alter table {table} drop column {name}",
    "primary key": "alter table {table} drop constraint {name}",
    "unique constraint": "alter table {table} drop constraint {name}",
    "index": "drop index {own}",
    "trigger": "drop trigger {name} on {table}",
}


@pytest.fixture
def connection(empty_database_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a database with a complete schema `SCHEMA`; changes are rolled back."""
    migrate(empty_database_dsn, SCHEMA.name)
    with psycopg.connect(empty_database_dsn) as opened:
        yield opened
        opened.rollback()


def after(connection: psycopg.Connection[Any], statement: str) -> tuple[str, ...]:
    """The problems that a change makes; the change is undone."""
    with connection.transaction(force_rollback=True):
        connection.execute(statement.format(s=SCHEMA.quoted).encode())
        return check_schema(connection, SCHEMA)


@pytest.mark.acceptance("A01")
@pytest.mark.parametrize("kind", DROPS)
def test_everything_dropped_is_named(connection: psycopg.Connection[Any], kind: str) -> None:
    dropped = [part for part in PARTS if part.kind == kind]
    assert dropped
    for part in dropped:
        table = SCHEMA.table(part.table)
        name = Schema(part.name or part.table).quoted
        drop = DROPS[kind].format(table=table, name=name, own=SCHEMA.table(part.name))
        problems = after(connection, drop.replace("{", "{{").replace("}", "}}"))
        named = {
            "table": f"table {table} is missing",
            "column": f"column {table}.{name} is missing",
        }.get(kind, f"{kind} {part.name} on {table} is missing")
        assert any(problem.startswith(named) for problem in problems), (part, problems)
        assert kind != "table" or len(problems) == 1


@pytest.mark.acceptance("A01")
def test_a_worker_is_told_everything_at_once(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        'drop table "Jobs-x".workers; alter table "Jobs-x".jobs drop column label;'
        ' drop index "Jobs-x".jobs_claim; drop trigger audit_log_append_only on "Jobs-x".audit_log'
    )
    with pytest.raises(SchemaIncomplete) as refused:
        require_schema(connection, SCHEMA)
    assert refused.value.code == "schema_incomplete"
    assert isinstance(refused.value, LeasebookError)
    assert len(refused.value.problems) == 4
    text = str(refused.value)
    for name in ("workers", "beat_at", "workers_pkey", "label", "jobs_claim", "append_only"):
        assert name in text
    assert "leasebook migrate --schema Jobs-x --sql" in text


WRONG = {
    "alter table {s}.jobs alter version type integer": 'column "Jobs-x"."jobs"."version" is wrong',
    "alter table {s}.jobs alter queue drop not null": 'column "Jobs-x"."jobs"."queue" is wrong',
    "alter table {s}.jobs alter label set not null": 'column "Jobs-x"."jobs"."label" is wrong',
    "alter table {s}.jobs alter starts drop default": 'column "Jobs-x"."jobs"."starts" is wrong',
    "alter table {s}.group_inbox alter id drop identity": '"group_inbox"."id" is wrong',
    "alter table {s}.jobs rename column name to title": 'column "Jobs-x"."jobs"."name" is missing',
    "alter table {s}.workers set unlogged": 'table "Jobs-x"."workers" is wrong: unlogged',
    "alter table {s}.workers rename to w; create view {s}.workers as select * from {s}.w": (
        'table "Jobs-x"."workers" is wrong: not a plain table'
    ),
    "drop index {s}.jobs_leased; create index jobs_leased on {s}.jobs (due_at)": (
        'index jobs_leased on "Jobs-x"."jobs" is wrong'
    ),
    "drop index {s}.jobs_leased; create index jobs_leased on {s}.workers (id)": (
        'index jobs_leased on "Jobs-x"."jobs" is missing'
    ),
    "drop index {s}.jobs_open_group;"
    " create index jobs_open_group on {s}.jobs (queue, name, group_key) where state = 'grouped'": (
        'index jobs_open_group on "Jobs-x"."jobs" is wrong'
    ),
    "update pg_index set indisvalid = false where indexrelid = '{s}.jobs_claim'::regclass": (
        'index jobs_claim on "Jobs-x"."jobs" is wrong'
    ),
    "update pg_index set indisvalid = false where indexrelid = '{s}.jobs_pkey'::regclass": (
        'primary key jobs_pkey on "Jobs-x"."jobs" is wrong'
    ),
    "alter table {s}.job_events drop constraint job_events_pkey,"
    " add constraint job_events_pkey primary key (version, job_id)": (
        "primary key job_events_pkey"
    ),
    "alter table {s}.job_events disable trigger job_events_append_only": "(disabled)",
    "alter table {s}.job_events enable trigger job_events_append_only": "(not for every session)",
    "alter table {s}.audit_log enable replica trigger audit_log_append_only": (
        "(not for every session)"
    ),
    "drop trigger job_events_append_only on {s}.job_events;"
    " create trigger job_events_append_only before update on {s}.job_events"
    " for each statement execute function {s}.refuse_change();"
    " alter table {s}.job_events enable always trigger job_events_append_only": (
        'trigger job_events_append_only on "Jobs-x"."job_events" is wrong'
    ),
    "delete from {s}.leasebook_version": "holds no revision, expected 0005",
    "drop schema {s} cascade": 'table "Jobs-x"."job_events" is missing',
}


@pytest.mark.acceptance("A01")
def test_everything_wrong_is_named(connection: psycopg.Connection[Any]) -> None:
    for change, expected in WRONG.items():
        problems = after(connection, change)
        assert any(expected in problem for problem in problems), (change, problems)


def test_more_than_is_needed_is_no_problem(connection: psycopg.Connection[Any]) -> None:
    assert not after(connection, "create table {s}.mine (id int); create index on {s}.jobs (name)")
    assert not after(connection, "alter table {s}.jobs add column mine text")


def test_a_schema_never_migrated(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(SchemaIncomplete) as refused:
        require_schema(connection, Schema('my "jobs"'))
    assert len(refused.value.problems) == len(TABLES)
    assert str(refused.value).endswith("Run: leasebook migrate --schema 'my \"jobs\"'")


@pytest.mark.acceptance("A01")
def test_a_newer_schema_serves_as_long_as_it_has_what_is_needed(
    connection: psycopg.Connection[Any],
) -> None:
    """A later release only adds, so workers of this one may go on, and be started again."""
    connection.execute("""update "Jobs-x".leasebook_version set version_num = '0099'""")
    connection.execute('alter table "Jobs-x".jobs add column later text')
    require_schema(connection, SCHEMA)
    assert check_schema(connection, SCHEMA) == ()
    connection.execute('drop index "Jobs-x".jobs_claim')
    with pytest.raises(
        SchemaNewer, match="is at revision 0099, and this release knows 0001, 0002, 0003"
    ):
        require_schema(connection, SCHEMA)
    with pytest.raises(SchemaNewer, match="index jobs_claim on") as newer:
        check_schema(connection, SCHEMA)
    assert len(newer.value.problems) == 1


def test_a_role_that_may_not_read_the_version(
    connection: psycopg.Connection[Any], empty_database_dsn: str
) -> None:
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(empty_database_dsn, name):
        problems = check_schema(with_options(empty_database_dsn, f"role={name}"), SCHEMA)
    assert problems == (
        'table "Jobs-x"."leasebook_version" cannot be read: grant this role select on it',
    )


def test_any_connection_will_do(
    connection: psycopg.Connection[Any], empty_database_dsn: str
) -> None:
    connection.execute("select 1")
    assert check_schema(connection, SCHEMA) == ()
    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS
    dsn = with_options(empty_database_dsn, "search_path=", "client_encoding=latin1")
    with psycopg.Connection[DictRow].connect(dsn, autocommit=True, row_factory=dict_row) as other:
        assert check_schema(other, SCHEMA) == ()
        assert other.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_nothing_in_the_schema_is_unknown_to_the_check(
    connection: psycopg.Connection[Any],
) -> None:
    tables = connection.execute(
        "select relname from pg_class where relnamespace = %s::regnamespace and relkind in"
        " ('r', 'p', 'v', 'm', 'f')",
        (SCHEMA.quoted,),
    ).fetchall()
    assert {name for (name,) in tables} == {table.name for table in TABLES}
    names = [table.name for table in TABLES]
    rows = connection.execute(
        catalog.catalog().encode(), {"schema": SCHEMA.name, "tables": names}
    ).fetchall()
    found = {Part(kind, table, name): definition for kind, table, name, definition in rows}
    assert found == {part: text for table in TABLES for part, text in table.parts()}


def test_a_worker_starts_without_sqlalchemy_and_alembic() -> None:
    script = "import leasebook.infra.postgres.schema.check, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "psycopg" in loaded
    assert not {"sqlalchemy", "alembic"} & set(loaded)


@pytest.mark.parametrize(
    "name", ["", "a\0b", "é" * 32, "x" * 64, "\ud800", "pg_jobs", "100%"], ids=ascii
)
def test_names_that_the_server_would_refuse_or_change(name: str) -> None:
    with pytest.raises(InvalidValue, match=r"^schema: "):
        Schema(name)


def test_names_are_quoted() -> None:
    assert Schema().quoted == '"leasebook"'
    assert Schema('we"ird').table("jobs") == '"we""ird"."jobs"'
    assert Schema("é" * 31 + "x").name == "é" * 31 + "x"


@pytest.mark.parametrize("name", ["catalog", "may_read", "revisions"])
def test_rendered_sql(name: str) -> None:
    rendered = catalog.revisions(Schema()) if name == "revisions" else getattr(catalog, name)()
    assert rendered == (GOLDEN / f"{name}.sql").read_text("utf-8")
