"""A history that was recorded elsewhere, in a schema of its own: for SQL, never for workers.

It has no claim table on purpose: with one, its jobs would run a second time.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ...domain.errors import LeasebookError
from ...domain.log import Recorded
from ...projections.replay.facts import AuditLine
from ..codec import encode
from ..documents import dumps
from .connection import sorted_errors
from .dsn import connect
from .schema.migrate import migrate
from .schema.name import Schema
from .statements import restoring


class SchemaInUse(LeasebookError):
    """A history was to be imported where something has happened already."""

    code = "schema_in_use"

    def __init__(self, schema: Schema) -> None:
        super().__init__(
            f"cannot import into schema {schema.quoted}: it holds a log or jobs already. Name one "
            "that is not there yet with --schema."
        )


@frozen
class Restored:
    """How many events and lines of the audit log were written."""

    events: int
    audit: int


def restore(
    dsn: str, schema: str, events: Iterable[Recorded], audit: Iterable[AuditLine]
) -> Restored:
    """Make the schema and write a history into it, all of it or nothing.

    Raises SchemaInUse, what ``migrate`` raises, StoreUnavailable and DataRefused.
    """
    target = Schema(schema)
    migrate(dsn, schema)
    with sorted_errors(), connect(dsn) as connection, connection.transaction():
        row = connection.execute(restoring.is_used(target).encode()).fetchone()
        if row is None or row[0]:
            raise SchemaInUse(target)
        connection.execute(restoring.claim(target).encode())
        with connection.cursor() as cursor:
            written = lines = 0
            with cursor.copy(restoring.copy_events(target).encode()) as copy:
                for each in events:
                    numbers = (each.job_id, each.version, each.event_id, each.xid)
                    copy.write_row((*numbers, *encode(each.event)))
                    written += 1
            with cursor.copy(restoring.copy_audit(target).encode()) as copy:
                for line in audit:
                    detail = dumps(dict(line.detail))
                    copy.write_row((line.at, line.kind, line.job_id, line.worker, detail))
                    lines += 1
    return Restored(written, lines)
