"""The log and the evidence beside it grow, and nothing else ever happens to them."""

from __future__ import annotations

import secrets
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tests.support.schemas import role

EVENT = (
    "insert into leasebook.job_events (job_id, version, at, kind)"
    " values (%s, 1, clock_timestamp(), 'enqueued.v1')"
)
EVIDENCE = "insert into leasebook.audit_log (kind, detail) values ('worker_started', '{}')"

CHANGES = [
    "update {table} set kind = 'other'",
    "update {table} set kind = 'other' where false",
    "delete from {table}",
    "delete from only {table} where false",
    "truncate {table}",
    "truncate leasebook.workers, {table} cascade",
    "with gone as (delete from {table} returning 1) select count(*) from gone",
]
MERGES = [
    "merge into {table} t using (select 1) s on true when matched then delete",
    "merge into {table} t using (select 1) s on true when matched then update set kind = 'other'",
]
UPSERTS = {
    "job_events": "insert into leasebook.job_events (job_id, version, at, kind)"
    " select job_id, version, at, kind from leasebook.job_events"
    " on conflict (job_id, version) do update set kind = 'other'",
    "audit_log": "insert into leasebook.audit_log (id, kind, detail)"
    " overriding system value select id, kind, detail from leasebook.audit_log"
    " on conflict (id) do update set kind = 'other'",
}


@pytest.mark.acceptance("E03", "I16")
@pytest.mark.parametrize("table", ["job_events", "audit_log"])
@pytest.mark.parametrize("who", ["superuser", "owner", "granted", "replica"])
def test_no_role_can_change_what_was_recorded(database_dsn: str, table: str, who: str) -> None:
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(database_dsn, name) as other, psycopg.connect(database_dsn) as connection:
        connection.execute(EVENT, (UUID(int=1),))
        connection.execute(EVIDENCE)
        everything = f"select * from leasebook.{table}".encode()
        recorded = connection.execute(everything).fetchall()
        become(connection, who, other)
        merges = MERGES if connection.info.server_version >= 150000 else []
        for change in [*CHANGES, *merges, UPSERTS[table]]:
            statement = change.format(table=f"leasebook.{table}")
            with (
                pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"),
                connection.transaction(),
            ):
                connection.execute(statement.encode())
        assert connection.execute(everything).fetchall() == recorded
        connection.execute(EVENT, (UUID(int=2),))
        connection.execute(EVIDENCE)
        connection.rollback()


def become(connection: psycopg.Connection, who: str, other: sql.Identifier) -> None:
    """Make the session one that would be allowed everything."""
    if who == "superuser":
        return
    if who == "replica":
        connection.execute("set local session_replication_role = replica")
        return
    grant = "grant all on all tables in schema leasebook to {role};"
    own = "".join(
        f"alter table leasebook.{table} owner to {{role}};"
        for table in ("job_events", "audit_log", "workers")
    )
    allowed = grant + "grant all on schema leasebook to {role};" + (own if who == "owner" else "")
    rights = allowed.replace("{role}", other.as_string(connection))
    connection.execute(rights.encode())
    connection.execute(sql.SQL("set local role {}").format(other))


@pytest.mark.acceptance("E03")
def test_a_version_is_taken_once(database_dsn: str) -> None:
    with psycopg.connect(database_dsn) as connection:
        connection.execute(EVENT, (UUID(int=1),))
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(EVENT, (UUID(int=1),))
