"""The claim table in PostgreSQL, held against its log in chunks and mended row by row."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.errors import LockNotAvailable

from ...domain.log import Recorded
from ...projections.claim import KeptRow
from ...projections.row import to_row
from ..documents import dumps
from ..ports import StoreUnavailable
from ..rebuild_ports import Candidate, Chunk, NotALiveLog, Place, RepairElsewhere, RowsBusy
from .batches import row_columns
from .connection import Link, Params, Row
from .rows import flags, job_of, numbers, recorded, texts, uuids
from .schema.check import require_schema
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import frame, look, rebuilding, restoring, windows, workers

CHUNK_EVENTS = 5_000
#: How long a row may keep a repair waiting; shorter than the server takes to look for deadlocks.
ROW_SECONDS = 0.2
FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
#: The name of its checkpoint, and of its turn.
REPAIR = "projection repair"
REPAIRED = "row_repaired"


class PostgresClaimTable:
    """Implements ``ClaimTable`` on a connection of its own, made at the first question.

    Raises InvalidDsn, and StoreUnavailable when the database does not answer, or not in time.
    """

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        settings: Settings | None = None,
        chunk_events: int = CHUNK_EVENTS,
    ) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings(prepare_after=None)
        self._link = Link(dsn, self._settings, "leasebook projection")
        self._chunk_events = chunk_events

    def require_schema(self) -> None:
        """Raise SchemaIncomplete when something is missing, with every problem and the remedy."""
        require_schema(self._link.connection(), self._schema)

    def events(self) -> int:
        """About how many events the log holds; 0 when that is not known."""
        begin = frame.begin_look(self._settings)
        asked = {"table": self._schema.table("job_events")}
        rows = self._link.once(begin, rebuilding.estimate(), asked)
        return rows[0][0] if rows else 0

    def chunk(self, after: UUID | None) -> Chunk:
        """The next jobs after an id, whole streams and rows, in one snapshot."""
        link, schema = self._link, self._schema
        try:
            link.say(frame.begin_snapshot(self._settings))
            params: dict[str, object] = {"after": after or FIRST, "limit": self._chunk_events}
            last = link.ask(rebuilding.chunk_end(schema), params)[0][0]
            params["last"] = last or LAST
            log = [recorded(row) for row in link.ask(rebuilding.events(schema), params)]
            rows = link.ask(rebuilding.rows(schema), params)
            found = _candidates(link, schema, log, rows)
            link.commit()
        except BaseException:
            link.abandon()
            raise
        return Chunk(found, last, len(log))

    def place(self) -> Place:
        """Where a repair was broken off; the beginning when none was."""
        begin = frame.begin_look(self._settings)
        statement = windows.checkpoint(self._schema)
        home = self._link.once(begin, statement, {"name": windows.HOME})
        if home and json.loads(home[0][0]).get("system") == restoring.ELSEWHERE:
            raise NotALiveLog
        rows = self._link.once(begin, statement, {"name": REPAIR})
        if not rows or rows[0][0] is None:
            return Place()
        document = json.loads(rows[0][0])
        last = document["last"]
        return Place(None if last is None else UUID(last), document["events"], document["rows"])

    @contextmanager
    def mending(self, ids: Sequence[UUID]) -> Generator[PostgresMending]:
        """A short transaction that holds the rows of these jobs, as far as they have one."""
        link, schema = self._link, self._schema
        try:
            link.say(frame.begin_impatient(self._settings, ROW_SECONDS))
            turn = {"schema": schema.name, "name": REPAIR}
            if not link.ask(windows.take_turn(), turn)[0][0]:
                raise RepairElsewhere
            link.ask(rebuilding.lock(schema), {"ids": uuids(ids)})
            yield PostgresMending(link, schema, ids)
            link.commit()
        except StoreUnavailable as error:
            link.abandon()
            if isinstance(error.__cause__, LockNotAvailable):
                raise RowsBusy from error
            raise
        except BaseException:
            link.abandon()
            raise

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        self._link.close()


class PostgresMending:
    """Implements ``Mending``; what the port promises is not said again here."""

    def __init__(self, link: Link, schema: Schema, ids: Sequence[UUID]) -> None:
        self._link = link
        self._schema = schema
        self._ids = ids
        self._told: list[tuple[UUID, str]] = []

    def candidates(self) -> Sequence[Candidate]:
        """The jobs as they stand under the locks."""
        asked = {"ids": uuids(self._ids)}
        log = [recorded(row) for row in self._ask(look.streams, asked)]
        return _candidates(self._link, self._schema, log, self._ask(rebuilding.rows_of, asked))

    def put(self, rows: Sequence[KeptRow]) -> None:
        """Let these rows be as given; who blocks one of them learns of it."""
        if not rows:
            return
        columns = row_columns([each.row for each in rows])
        columns["seq"] = numbers([each.seq for each in rows])
        columns["has_waiter"] = flags([each.has_waiter for each in rows])
        self._ask(rebuilding.put, columns)
        ids = uuids([each.row[0].id for each in rows])
        self._ask(rebuilding.tell_blockers, {"ids": ids})

    def drop(self, ids: Sequence[UUID]) -> None:
        """Let these jobs have no row."""
        if ids:
            self._ask(rebuilding.drop, {"ids": uuids(ids)})

    def record(self, job_id: UUID, found: Sequence[str]) -> None:
        """Tell the audit log what was wrong with a row."""
        params = {
            "kinds": texts([REPAIRED]),
            "job_ids": [job_id],
            "workers": texts([None]),
            "details": texts([dumps({"found": found})]),
        }
        self._ask(workers.record, params)

    def reached(self, place: Place) -> None:
        """Let the next repair begin here, if this transaction commits."""
        last = None if place.last is None else str(place.last)
        document = {"last": last, "events": place.events, "rows": place.rows}
        self._ask(windows.move_checkpoint, {"name": REPAIR, "position": dumps(document)})

    def _ask(self, statement: Any, params: Params) -> list[Row]:
        return self._link.ask(statement(self._schema), params)


def _candidates(
    link: Link, schema: Schema, log: Iterable[Recorded], rows: Sequence[Row]
) -> list[Candidate]:
    """Streams and rows by job, in order of id."""
    streams = {job_id: tuple(some) for job_id, some in groupby(log, key=lambda each: each.job_id)}
    kept = {row[0]: _kept(row) for row in rows}
    awaited: set[UUID] = set()
    if kept:
        asked = {"ids": uuids(kept)}
        awaited = {row[0] for row in link.ask(rebuilding.awaited(schema), asked)}
    return [
        Candidate(
            job_id,
            streams.get(job_id, ()),
            kept.get(job_id),
            job_id in kept and kept[job_id] is None,
            job_id in awaited,
        )
        for job_id in sorted({*streams, *kept})
    ]


def _kept(row: Row) -> KeptRow | None:
    """A row as the table holds it, None for one that stands for no job."""
    _, seq, suspect, has_waiter, *columns = row
    with suppress(KeyError, TypeError, ValueError, AssertionError):
        made = to_row(job_of(columns))
        if made is not None:
            spec, state = made
            return KeptRow(seq, (spec, state._replace(suspect=suspect)), has_waiter)
    return None
