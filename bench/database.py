"""The server that everything is measured on, and a fresh database for each measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote, urlencode

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from leasebook.infra.postgres.server import embedded_server

from .meter import postmaster_of

PREFIX = "leasebook_bench_"
SETTINGS = {
    "shared_buffers": "1GB",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "300",
    # Loaded, but it counts only where somebody asks for it: in the idle measure.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}
SHOWN = ("server_version", "shared_buffers", "fsync", "synchronous_commit", "max_wal_size")
COPY_TRIES = 100

#: Those that frame a transaction or set its parameters are counted apart.
COUNT_STATEMENTS = """
select coalesce(sum(s.calls), 0),
       coalesce(sum(s.calls) filter (
           where s.query !~* '^\\s*(begin|start|commit|end|rollback|set|reset|discard)\\M'), 0)
  from pg_stat_statements as s
  join pg_database as d on d.oid = s.dbid
 where d.datname = %s
"""
SIZE = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
 where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
"""


def uri(dsn: str, database: str) -> str:
    """The same server and user, another database; in the form that every driver reads."""
    given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    given.pop("dbname", None)
    return f"postgresql:///{quote(database)}?{urlencode(given, safe='/')}"


class Server:
    """A running server.  Databases made here are dropped by ``close``."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        try:
            self._admin = psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError as error:
            raise SystemExit(f"make bench: no server answers: {error}") from None
        if not self._answer("select pg_try_advisory_lock(hashtext(%s))", PREFIX):
            raise SystemExit("another bench is measuring on this server; wait until it is done")
        self.postmaster = postmaster_of(self._admin.info.backend_pid)
        self._drop_all()

    def facts(self) -> dict[str, str]:
        """The settings that decide about speed."""
        facts: dict[str, str] = {}
        for name in SHOWN:
            row = self._admin.execute(sql.SQL("show {}").format(sql.Identifier(name))).fetchone()
            assert row is not None
            facts[name] = row[0]
        return facts

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """The name of a database that ``prepare`` was called for once, with its DSN."""
        database = f"{PREFIX}template_{name}"
        if not self._exists(database):
            self._run("create database {}", database)
            try:
                prepare(uri(self._dsn, database))
                with psycopg.connect(uri(self._dsn, database), autocommit=True) as connection:
                    connection.execute("vacuum analyze")
            except BaseException:
                self._drop(database)
                raise
        return database

    def fresh(self, template: str) -> str:
        """The DSN of a new copy of a template; the copy before it is dropped."""
        database = f"{PREFIX}run"
        self._drop(database)
        # Copying files, where the server can, is quick, and writes no log for us to count.
        by_files = " strategy file_copy" if self._admin.info.server_version >= 150_000 else ""
        for tries_left in reversed(range(COPY_TRIES)):
            try:
                self._run("create database {} template {}" + by_files, database, template)
                break
            except errors.ObjectInUse:
                if not tries_left:
                    raise
                time.sleep(0.1)
        return uri(self._dsn, database)

    def checkpoint(self) -> None:
        """Start from clean buffers, where this user may."""
        with suppress(errors.InsufficientPrivilege):
            self._admin.execute("checkpoint")

    def wal(self) -> int:
        """Bytes of log that the whole server has written so far."""
        return int(self._answer("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def count_statements(self) -> bool:
        """Begin to count the statements of the database of the run; whether this server can."""
        run = sql.Identifier(f"{PREFIX}run")
        every = sql.SQL("alter database {} set pg_stat_statements.track = 'top'").format(run)
        try:
            self._admin.execute("create extension if not exists pg_stat_statements")
            self._admin.execute(every)
            self.statements()
        except psycopg.Error:
            return False
        return True

    def statements(self) -> tuple[int, int]:
        """Statements of the run that have ended: all, and those that ask or change something."""
        row = self._admin.execute(COUNT_STATEMENTS, (f"{PREFIX}run",)).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def transactions(self) -> int:
        """Transactions of the run that have ended."""
        return int(
            self._answer(
                "select xact_commit + xact_rollback from pg_stat_database where datname = %s",
                f"{PREFIX}run",
            )
        )

    def close(self) -> None:
        """Drop what was made."""
        self._drop_all()
        self._admin.close()

    def _drop_all(self) -> None:
        rows = self._admin.execute(
            "select datname from pg_database where starts_with(datname, %s)", (PREFIX,)
        )
        for (database,) in rows.fetchall():
            self._drop(database)

    def _exists(self, database: str) -> bool:
        question = "select exists (select from pg_database where datname = %s)"
        return bool(self._answer(question, database))

    def _answer(self, question: LiteralString, *values: str) -> Any:
        row = self._admin.execute(question, values).fetchone()
        assert row is not None
        return row[0]

    def _drop(self, database: str) -> None:
        self._run("drop database if exists {} with (force)", database)

    def _run(self, statement: LiteralString, *databases: str) -> None:
        names = [sql.Identifier(name) for name in databases]
        self._admin.execute(sql.SQL(statement).format(*names))


@contextmanager
def serving(dsn: str | None, folder: Path) -> Generator[Server]:
    """Somebody's server, or else a private one whose data lives under ``folder``."""
    if dsn is not None:
        server = Server(dsn)
        try:
            yield server
        finally:
            server.close()
        return
    with embedded_server(folder, settings=SETTINGS, linger_seconds=0.0) as lease:
        server = Server(lease.dsn)
        try:
            yield server
        finally:
            server.close()
