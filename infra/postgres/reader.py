"""The queue and its log as people read them: depth, jobs, histories, everything at one moment."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from attrs import frozen

from ...domain.job import Job
from ...domain.log import Recorded
from ...projections.check import KeptRow
from ...projections.row import StateRow, to_row
from ...projections.status import Summary
from .connection import Link, sorted_errors
from .rows import job_of, recorded, summary_of, uuids
from .schema.check import require_schema
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import look, reading, summaries

FETCH_ROWS = 5_000


@frozen
class QueueStats:
    """How one queue stands: counts of jobs (``inbox``: items), and since when the oldest is due.

    ``due`` is ready to start; ``grouped``, ``retrying`` and ``delayed`` wait for their time, and
    ``blocked`` for the end of another job.
    """

    queue: str
    due: int
    running: int
    retrying: int
    grouped: int
    blocked: int
    delayed: int
    held: int
    inbox: int
    oldest_due: datetime | None


@frozen
class Snapshot:
    """The log and the claim table as they stood at one moment."""

    _connection: psycopg.Connection[Any]
    _schema: Schema

    def log(self) -> Iterator[Recorded]:
        """Every event by job and version, read in pieces."""
        with self._connection.cursor("leasebook_log", binary=True) as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(reading.log(self._schema).encode())
            for row in cursor:
                yield recorded(row)

    def rows(self) -> dict[UUID, KeptRow]:
        """The claim table by job id."""
        with self._connection.cursor("leasebook_rows", binary=True) as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(reading.rows(self._schema).encode())
            return {kept.row[0].id: kept for kept in map(_kept, cursor)}


class PostgresReader:
    """Answers people's questions on a connection of its own, made at the first one.

    Raises InvalidDsn, and StoreUnavailable when the database does not answer.
    """

    def __init__(self, dsn: str, schema: str = DEFAULT, settings: Settings | None = None) -> None:
        self._schema = Schema(schema)
        self._link = Link(dsn, settings or Settings(prepare_after=None), "leasebook reader")

    def require_schema(self) -> None:
        """Raise SchemaIncomplete when something is missing, with every problem and the remedy."""
        with sorted_errors():
            require_schema(self._link.connection(), self._schema)

    def now(self) -> datetime:
        """The database's time."""
        at: datetime = self._ask(reading.now(), {})[0][0]
        return at

    def stats(self) -> Sequence[QueueStats]:
        """How every queue stands that holds anything, by name."""
        return [QueueStats(*row) for row in self._ask(reading.stats(self._schema), {})]

    def jobs(
        self, queue: str | None, name: str | None, state: str | None, limit: int
    ) -> Sequence[Job]:
        """Unfinished and held jobs, the next due first; None matches everything."""
        asked = {"queue": queue, "name": name, "state": state, "limit": limit}
        return [job_of(row) for row in self._ask(reading.jobs(self._schema), asked)]

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of one job in order of version; empty when there is none."""
        params = {"ids": uuids([job_id])}
        return [recorded(row) for row in self._ask(look.streams(self._schema), params)]

    def summary(self, job_id: UUID) -> Summary | None:
        """How a job ended, if that is kept: its stream may be gone."""
        rows = self._ask(summaries.of(self._schema), {"id": str(job_id)})
        return summary_of(rows[0]) if rows else None

    def counts(self) -> dict[str, int]:
        """How many events, and how many lines of the audit log, there are of each kind."""
        return dict(self._ask(reading.counts(self._schema), {}))

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        """A consistent view of log and claim table, held while the block runs."""
        connection = self._link.connection()
        with sorted_errors(), connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            yield Snapshot(connection, self._schema)

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        self._link.close()

    def _ask(self, statement: str, params: Mapping[str, object]) -> list[Any]:
        connection = self._link.connection()
        with sorted_errors(), connection.cursor(binary=True) as cursor:
            return cursor.execute(statement.encode(), params).fetchall()


def _kept(row: Sequence[Any]) -> KeptRow:
    """A row as the table holds it: ``suspect`` as it stands there, not as it should."""
    seq, suspect, has_waiter, *columns = row
    made = to_row(job_of(columns))
    assert made is not None, "only unfinished and held jobs have a row"
    spec, state = made
    kept: StateRow = state._replace(suspect=suspect)
    return KeptRow(seq, (spec, kept), has_waiter)
