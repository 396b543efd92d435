"""Gathering what the doctor looks at: a few short questions to the server's own statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from ...projections.health import Facts, SessionFacts, SlotFacts, TableFacts
from .connection import sorted_errors
from .dsn import connect
from .schema.check import check_schema
from .schema.name import Schema
from .statements import doctor

STATEMENT_SECONDS = 30


def examine(dsn: str, schema: Schema) -> Facts:
    """The facts of one moment.

    Of a schema that lacks tables only what the server says of itself.  Raises InvalidDsn, and
    StoreUnavailable when the database does not answer.
    """
    with sorted_errors(), connect(dsn) as connection:
        connection.autocommit = True
        connection.execute(f"set statement_timeout = '{STATEMENT_SECONDS}s'".encode())
        problems = check_schema(connection, schema)
        named = {"schema": schema.name}
        autovacuum, counts, naptime, freeze, multixact, notify, hidden, standby = _ask(
            connection, doctor.server()
        )[0]
        facts: dict[str, Any] = {
            "tables": [TableFacts(*row) for row in _ask(connection, doctor.tables(), named)],
            "sessions": [SessionFacts(*row) for row in _ask(connection, doctor.sessions())],
            "slots": [SlotFacts(*row) for row in _ask(connection, doctor.slots())],
            "schema_problems": problems,
            "autovacuum": autovacuum,
            "track_counts": counts,
            "naptime": naptime,
            "freeze_age": freeze,
            "multixact_age": multixact,
            "notify_usage": notify,
            "hidden_sessions": hidden,
            "in_recovery": standby,
        }
        if not any(" is missing, with " in problem for problem in problems):
            facts |= _of_queue(connection, schema)
        return Facts(**facts)


def _of_queue(connection: psycopg.Connection[Any], schema: Schema) -> dict[str, Any]:
    ((silent, living),) = _ask(connection, doctor.workers(schema))
    ((held, due, oldest),) = _ask(connection, doctor.queue(schema))
    ((aborted,),) = _ask(connection, doctor.aborted(schema))
    ((events, size),) = _ask(connection, doctor.growth(schema), {"schema": schema.name})
    return {
        "silent_workers": silent,
        "living_workers": living,
        "held": held,
        "aborted": aborted,
        "due": due,
        "oldest_due": oldest,
        "events_per_day": float(events),
        "bytes_per_event": float(size),
    }


def _ask(
    connection: psycopg.Connection[Any], statement: str, params: Mapping[str, object] | None = None
) -> list[Any]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        return cursor.execute(statement.encode(), params or {}).fetchall()
