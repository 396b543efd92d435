"""Somebody's queue table in PostgreSQL: read, locked row by row, never changed."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from attrs import frozen

from ...domain.errors import InvalidValue, LeasebookError
from ..caller_ports import Order
from ..import_ports import Listed, Noted, OldRow, Reading, Survey
from ..ports import DataRefused
from .callers import accept
from .connection import has_rows, sorted_errors
from .schema.name import Schema
from .statements import importing
from .statements.importing import OldNames

#: How long the guard waits for those who are writing.
LOCK_SECONDS = 5
#: Keys are compared as texts, so these must always read the same.
PLAIN = "set local timezone = 'UTC'; set local datestyle = 'ISO';"
SURVEY = f"set transaction isolation level repeatable read, read only; {PLAIN}"
FRESH = f"set transaction isolation level read committed, read write; {PLAIN}"
BATCH = (
    f"{FRESH} set local lock_timeout = '60s'; set local idle_in_transaction_session_timeout = '60s'"
)
PARTITIONED = "p"


class NoSuchTable(LeasebookError, LookupError):
    """The table to import from is not there, or cannot be used."""

    code = "no_such_table"


@frozen
class PostgresOldTable:
    """Implements ``OldTable`` on a connection in autocommit mode, which the caller closes."""

    connection: psycopg.Connection[Any]
    schema: Schema
    names: tuple[str, str]
    kind: str
    columns: Mapping[str, str]
    primary_key: tuple[str, ...]

    @property
    def source(self) -> str:
        """The table's full name, under which its rows are remembered."""
        return ".".join(self.names)

    @property
    def partitioned(self) -> bool:
        """Whether it is the parent of partitions."""
        return self.kind == PARTITIONED

    def old(self, reading: Reading) -> OldNames:
        """The names for statements.  Raises InvalidValue for a table without any key."""
        key = reading.key or self.primary_key
        if not key:
            raise InvalidValue(
                "map.key",
                f"a map without one for {self.source}, which has no primary key,",
                "name the columns that tell its rows apart",
            )
        return OldNames(
            *self.names,
            keys=tuple((column, self.columns[column]) for column in key),
            order=reading.order,
            columns=reading.columns,
            where=reading.where,
            finished=reading.finished,
        )

    def survey(self, reading: Reading) -> Survey:
        """Every row that is not over.  Raises InvalidValue when the map's conditions are wrong."""
        old = self.old(reading)
        try:
            with self._sorted(), self.connection.transaction():
                self._say(SURVEY)
                ((finished, now),) = self.ask(importing.finished(old))
                return Survey(now, self.rows(old), finished)
        except DataRefused as refusal:
            raise _bad_map(refusal.reason) from None

    def rows(self, old: OldNames) -> list[Listed]:
        """Every row that is not over, as the open transaction sees it."""
        rows = self.ask(importing.survey(self.schema, old), {"source": self.source})
        return [Listed(*row) for row in rows]

    @contextmanager
    def batch(
        self, reading: Reading, keys: Sequence[str], *, keep: bool
    ) -> Generator[PostgresOldBatch]:
        """Lock these rows; commit at the end of the block, or undo everything unless ``keep``."""
        old = self.old(reading)
        parts = [json.loads(key) for key in keys]
        params = {
            f"key{number}": [part[number] for part in parts] for number in range(len(old.keys))
        }
        with self._sorted(), self.connection.transaction(force_rollback=not keep):
            self._say(BATCH)
            if keep:
                named = {"schema": self.schema.name, "source": self.source}
                self.ask(importing.alone(), named)
            locked = self.ask(importing.lock(old), params)
            rows = [
                OldRow(keys[int(place) - 1], waiting, finished, json.loads(row))
                for place, waiting, finished, row in locked
            ]
            missing: list[str] = []
            if len(rows) < len(keys):
                have = {place for place, *_ in locked}
                present = {place for (place,) in self.ask(importing.present(old), params)}
                missing = [keys[int(place) - 1] for place in sorted(present - have)]
            yield PostgresOldBatch(self, rows, missing)

    def note(self, line: Noted) -> None:
        """Append to the audit log in a transaction of its own."""
        with sorted_errors(), self.connection.transaction():
            self.append([line])

    def append(self, lines: Sequence[Noted]) -> None:
        """Append to the audit log in the transaction that is open."""
        params = {
            "kinds": [each.kind for each in lines],
            "request_ids": [each.request_id for each in lines],
            "details": [each.detail for each in lines],
        }
        self.ask(importing.evidence(self.schema), params)

    def guarded(self) -> bool:
        """Whether the guard stands."""
        ((stands,),) = self.ask(importing.guarded(), {"table": self._regclass})
        return bool(stands)

    def writers(self) -> list[int]:
        """The process ids of sessions that have written to it and not committed."""
        return [pid for (pid,) in self.ask(importing.writers(), {"table": self._regclass})]

    @contextmanager
    def guarding(self, reading: Reading, hint: str) -> Generator[list[Listed]]:
        """Put the guard up; it stands when the block ends well.

        Inside the block nobody can write; it gets the rows that are not over.  Raises
        StoreUnavailable when those who are writing do not end within ``LOCK_SECONDS``.
        """
        old = self.old(reading)
        with self._sorted(), self.connection.transaction():
            self._say(f"{FRESH} set local lock_timeout = '{LOCK_SECONDS}s'")
            for statement in importing.guard(self.schema, old, hint, partitioned=self.partitioned):
                self._say(statement)
            yield self.rows(old)

    def unguard(self, line: Noted) -> None:
        """Take the guard away, with a line in the audit log."""
        names = OldNames(*self.names, (), (), (), "true", "false")
        with sorted_errors(), self.connection.transaction():
            self._say(f"set local lock_timeout = '{LOCK_SECONDS}s'")
            self._say(importing.unguard(names))
            self.append([line])

    @property
    def _regclass(self) -> str:
        return ".".join('"' + name.replace('"', '""') + '"' for name in self.names)

    def _say(self, statements: str) -> None:
        self.connection.execute(statements.encode())

    def ask(self, statement: str, params: Mapping[str, object] | None = None) -> list[Any]:
        """The rows of one statement in the transaction that is open."""
        # Without parameters a doubled percent sign would stay one.
        cursor = self.connection.execute(statement.encode(), params or {})
        return cursor.fetchall() if has_rows(cursor) else []

    @contextmanager
    def _sorted(self) -> Generator[None]:
        try:
            with sorted_errors():
                yield
        except psycopg.ProgrammingError as error:
            raise _bad_map(error.diag.message_primary or type(error).__name__) from error


@frozen
class PostgresOldBatch:
    """Implements ``OldBatch`` in the transaction that is open."""

    table: PostgresOldTable
    rows: Sequence[OldRow]
    busy: Sequence[str]

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Remember rows as imported; the keys of those that were not yet."""
        params = {"source": self.table.source, "keys": list(keys)}
        return {key for (key,) in self.table.ask(importing.claim(self.table.schema), params)}

    def accept(self, orders: Sequence[Order]) -> None:
        """Write the jobs.  Raises DataRefused."""
        accept(self.table.schema, self.table.connection, orders)

    def note(self, lines: Sequence[Noted]) -> None:
        """Append to the audit log."""
        if lines:
            self.table.append(lines)


def find_table(connection: psycopg.Connection[Any], schema: Schema, name: str) -> PostgresOldTable:
    """The table that ``name`` means to this connection, which must be in autocommit mode.

    A name is read as SQL reads it, or taken as it is.  Raises NoSuchTable.
    """
    with sorted_errors():
        try:
            found = connection.execute(importing.find().encode(), {"name": name}).fetchone()
        except psycopg.ProgrammingError:
            found = None
        if found is None:
            raise NoSuchTable(f"there is no table {name!r}: {_near(connection, name)}.")
        namespace, table, kind, usable = found
        source = f"{namespace}.{table}"
        if kind not in ("r", PARTITIONED):
            raise NoSuchTable(f"{source} is no table. Name the table itself, not a view of it.")
        if not usable:
            raise NoSuchTable(
                f"{source} cannot be read and locked by this role. "
                f"Grant it select and update on {source}; nothing is ever updated."
            )
        named = {"schema": namespace, "table": table}
        rows = connection.execute(importing.columns().encode(), named).fetchall()
    key = sorted((place, column) for column, _, place in rows if place is not None)
    return PostgresOldTable(
        connection,
        schema,
        (namespace, table),
        kind,
        {column: type_name for column, type_name, _ in rows},
        tuple(column for _, column in key),
    )


def _bad_map(seen: str) -> InvalidValue:
    seen = f"a condition or column ({seen})"
    return InvalidValue("map", seen, "mend `where`, `finished`, `key` or `order`")


def _near(connection: psycopg.Connection[Any], name: str) -> str:
    from difflib import get_close_matches

    known = [row[0] for row in connection.execute(importing.tables().encode())]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"perhaps {near[0]!r} was meant" if near else "name one of this database"
