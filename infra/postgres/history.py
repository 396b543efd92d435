"""The live log as a replay reads it, without harm to those who work on it.

It is read in pieces, each in a short read-only transaction with a time-out, so that no snapshot is
kept from vacuum while somebody thinks about an answer.  A stream only grows, so what is read of it
in two pieces is still its beginning; a transaction that was open at ``until`` and is committed
later is seen or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ...domain.errors import LeasebookError
from ...domain.log import Recorded
from ...projections.health import SessionFacts
from ...projections.replay.facts import KINDS, AuditLine
from ...projections.status import Summary
from ...projections.wording import duration
from ..replay_ports import TooManyEvents
from .connection import Link, Params, Row
from .position import Position
from .rows import recorded, summary_of, texts, uuids
from .schema.check import require_schema
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import doctor, frame, look, reading, replaying, summaries

PIECE_ROWS = 5_000
EVENTS_MAX = 2_000_000
#: No event is older.
EVER = datetime(1, 1, 1, tzinfo=UTC)
NO_JOB = UUID(int=0)


class OldSnapshot(LeasebookError):
    """A replay was refused because vacuum is held up already, and reading would not help."""

    code = "old_snapshot"

    def __init__(self, session: SessionFacts) -> None:
        who = session.who if session.pid is None else f"pid {session.pid} ({session.who})"
        age = duration(timedelta(seconds=session.age))
        super().__init__(
            f"cannot replay now: {who} has kept dead rows from vacuum for {age}, which slows the "
            "queue down, and reading the log as well would not help. End that transaction "
            "(`leasebook doctor` says how), or read it --anyway."
        )
        self.session = session


class PostgresHistory:
    """Implements ``History`` on a connection of its own, made at the first question.

    At most ``events_max`` events are read for one question, of the log as ``upto`` sees it, or as
    it is.  Raises InvalidDsn, and StoreUnavailable when the database does not answer, or not in
    time.
    """

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        events_max: int = EVENTS_MAX,
        settings: Settings | None = None,
        piece_rows: int = PIECE_ROWS,
        upto: Position | None = None,
    ) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings(prepare_after=None)
        self._link = Link(dsn, self._settings, "leasebook replay")
        self._events_max = events_max
        self._piece_rows = piece_rows
        self._upto = None if upto is None else upto.snapshot

    @property
    def known_from(self) -> datetime | None:
        """The audit log begins with the first worker."""
        return None

    def require_schema(self) -> None:
        """Raise SchemaIncomplete when something is missing, with every problem and the remedy."""
        require_schema(self._link.connection(), self._schema)

    def require_calm(self, seconds: float) -> None:
        """Raise OldSnapshot when a snapshot of this database has been held for so long."""
        for session in (SessionFacts(*row) for row in self._ask(doctor.sessions(), {})):
            if session.holds is not None and session.age >= seconds:
                raise OldSnapshot(session)

    def now(self) -> datetime:
        """The database's time."""
        at: datetime = self._ask(reading.now(), {})[0][0]
        return at

    def events(
        self, until: datetime, since: datetime | None = None, job: UUID | None = None
    ) -> Iterator[Recorded]:
        """The events not after ``until``, by job and version, whole streams from their birth on.

        Streams that had completed before ``since`` are left out; of one ``job`` only its own is
        read.  Raises TooManyEvents.
        """
        found = self._pieces(until, since) if job is None else self._stream(job)
        for number, event in enumerate(found):
            if number == self._events_max:
                raise TooManyEvents(self._events_max, until)
            if event.at <= until:
                yield event

    def pruned(self, job: UUID) -> Summary | None:
        """How a job ended whose stream may be gone."""
        rows = self._ask(summaries.of(self._schema), {"id": str(job)})
        return summary_of(rows[0]) if rows else None

    def audit(self, until: datetime) -> Sequence[AuditLine]:
        """The lines not after ``until`` that ``facts.gather`` reads, in order of time."""
        lines: list[AuditLine] = []
        after, more = 0, True
        while more:
            params = {
                "after": after,
                "upto": self._upto,
                "until": until,
                "kinds": texts(KINDS),
                "limit": self._piece_rows,
            }
            rows = self._ask(replaying.audit(self._schema), params)
            for number, at, kind, detail, job_id, worker in rows:
                lines.append(AuditLine(at, kind, json.loads(detail), job_id, worker))
                after = number
            more = len(rows) == self._piece_rows
        return sorted(lines, key=lambda line: line.at)

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        self._link.close()

    def _stream(self, job: UUID) -> Iterator[Recorded]:
        params = {"ids": uuids([job])}
        yield from map(recorded, self._ask(look.streams(self._schema), params))

    def _pieces(self, until: datetime, since: datetime | None) -> Iterator[Recorded]:
        statement = replaying.events(self._schema)
        job, version = NO_JOB, 0
        while True:
            params = {
                "job": job,
                "version": version,
                "until": until,
                "upto": self._upto,
                "since": since or EVER,
                "limit": self._piece_rows,
            }
            rows = self._ask(statement, params)
            if not rows:
                return
            job, version = rows[0][:2]
            yield from (recorded(row[2:]) for row in rows if row[2] is not None)

    def _ask(self, statement: str, params: Params) -> list[Row]:
        begin = frame.begin_look(self._settings)
        return self._link.once(begin, statement, params)
