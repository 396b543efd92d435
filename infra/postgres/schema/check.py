"""Whether a schema has everything that this release needs, in two or three short queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import scalar_row, tuple_row

from ....migrations import REVISIONS, VERSION_TABLE
from ..dsn import connect
from ..statements import catalog
from .errors import SchemaIncomplete, SchemaNewer
from .name import DEFAULT, Schema
from .tables import TABLES, Part


def check_schema(
    connection: psycopg.Connection[Any] | str, schema: Schema | str = DEFAULT
) -> tuple[str, ...]:
    """A sentence for everything missing or wrong; empty when the schema is complete.

    Reads catalogs and one row, in the connection's transaction or in one of its own; for a DSN it
    opens a connection.  What a missing table would have had is named in the table's sentence.

    A schema that a later release migrated is complete when it has what this one needs.  Raises
    SchemaNewer when it has not; for a DSN also what `connect` does.
    """
    return _look(connection, _schema(schema))[0]


def require_schema(
    connection: psycopg.Connection[Any] | str, schema: Schema | str = DEFAULT
) -> None:
    """Like `check_schema`, but raises SchemaIncomplete, with every problem and the remedy."""
    wanted = _schema(schema)
    problems, revisions = _look(connection, wanted)
    if problems:
        raise SchemaIncomplete(wanted, problems, revisions)


def _schema(schema: Schema | str) -> Schema:
    return Schema(schema) if isinstance(schema, str) else schema


def _look(
    connection: psycopg.Connection[Any] | str, schema: Schema
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(connection, str):
        with connect(connection) as opened:
            return _inspect(opened, schema)
    return _inspect(connection, schema)


def _inspect(
    connection: psycopg.Connection[Any], schema: Schema
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    with connection.transaction():
        found = _found(connection, schema)
        column = Part("column", VERSION_TABLE, "version_num")
        readable = _may_read(connection, schema) if column in found else None
        revisions = _revisions(connection, schema) if readable else ()
    problems = list(_problems(schema, found))
    if any(revision not in REVISIONS for revision in revisions):
        # Migrations add: as long as all that this release needs is there, it goes on working.
        if problems:
            raise SchemaNewer(schema, revisions, problems)
        return (), revisions
    version_table = schema.table(VERSION_TABLE)
    if readable is False:
        problems.append(f"table {version_table} cannot be read: grant this role select on it")
    elif readable and REVISIONS[-1] not in revisions:
        seen = ", ".join(revisions) or "no revision"
        problems.append(f"table {version_table} holds {seen}, expected {REVISIONS[-1]}")
    return tuple(problems), revisions


def _found(connection: psycopg.Connection[Any], schema: Schema) -> dict[Part, str]:
    parameters = {"schema": schema.name, "tables": [table.name for table in TABLES]}
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(_query(connection, catalog.catalog()), parameters)
        return {Part(kind, table, name): definition for kind, table, name, definition in rows}


def _may_read(connection: psycopg.Connection[Any], schema: Schema) -> bool | None:
    """Whether this role may read the version table; None when there is none."""
    parameters = {"schema": schema.name, "table": VERSION_TABLE}
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(_query(connection, catalog.may_read()), parameters).fetchone()


def _revisions(connection: psycopg.Connection[Any], schema: Schema) -> tuple[str, ...]:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return tuple(cursor.execute(_query(connection, catalog.revisions(schema))))


def _query(connection: psycopg.Connection[Any], statement: str) -> bytes:
    return statement.encode(connection.info.encoding)


def _problems(schema: Schema, found: Mapping[Part, str]) -> Iterator[str]:
    for table in TABLES:
        parts = list(table.parts())
        name = schema.table(table.name)
        if parts[0][0] not in found:
            yield f"table {name} is missing, with {_listed([part for part, _ in parts[1:]])}"
            continue
        for part, expected in parts:
            seen = found.get(part)
            if seen != expected:
                yield f"{_title(part, name)} is {_difference(seen, expected)}"


def _title(part: Part, table: str) -> str:
    if part.kind == "table":
        return f"table {table}"
    if part.kind == "column":
        return f'column {table}."{part.name}"'
    return f"{part.kind} {part.name} on {table}"


def _difference(seen: str | None, expected: str) -> str:
    if seen is None:
        return f"missing, expected: {expected}"
    return f"wrong: {seen}, expected: {expected}"


def _listed(parts: Sequence[Part]) -> str:
    """`columns a, b; index c`: everything that went with a table."""
    by_kind: dict[str, list[str]] = {}
    for part in parts:
        by_kind.setdefault(part.kind, []).append(part.name)
    plural = {"index": "indexes", "primary key": "primary key"}
    return "; ".join(
        f"{plural.get(kind, kind + 's')} {', '.join(names)}" for kind, names in by_kind.items()
    )
