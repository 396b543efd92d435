"""The one reader of the log by windows: for whoever follows it, copies it or builds from it.

A window is what one snapshot sees and an earlier one did not.  Windows that follow one another part
the log: every committed event lies in exactly one, however late its transaction commits.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import monotonic

from attrs import frozen

from ...domain.log import Recorded
from ...projections.replay.facts import AuditLine
from .connection import Link, Row
from .position import ForeignLog, LogOnStandby, Position, WroteBefore, position_of
from .rows import recorded
from .schema.check import require_schema
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import frame
from .statements import windows as statements

PIECE_ROWS = 5_000
#: How often the indexes are told of new pages, at most.
SUMMARIZE_SECONDS = 5.0
#: What a reader that has read nothing has seen.
NOTHING = "1:1:"


@frozen
class Window:
    """What was committed after ``after`` (None: ever) and lies before ``upto``.

    Read it before its transaction ends.  ``link`` is that transaction: what is written through it
    becomes durable together with the checkpoint.
    """

    after: Position | None
    upto: Position
    link: Link
    _schema: Schema

    def events(self) -> Iterator[Recorded]:
        """Its events by job and version, read in pieces."""
        return map(recorded, self._rows(statements.events(self._schema)))

    def audit(self) -> Iterator[AuditLine]:
        """Its lines of the audit log by number."""
        return map(_entry, self._rows(statements.audit(self._schema)))

    def _rows(self, statement: str) -> Iterator[Row]:
        yield from self.link.stream(statement, bounds(self.after, self.upto), PIECE_ROWS)


class PostgresWindows:
    """Reads windows on a connection of its own, made at the first question.  One thread uses it.

    Raises InvalidDsn and StoreUnavailable; LogOnStandby, ForeignLog and ForeignPosition where
    snapshots would lie.
    """

    def __init__(self, dsn: str, schema: str = DEFAULT, settings: Settings | None = None) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings(prepare_after=None)
        self._link = Link(dsn, self._settings, "leasebook windows")
        self._summarized = float("-inf")

    def require_schema(self) -> None:
        """Raise SchemaIncomplete when something is missing, with every problem and the remedy."""
        require_schema(self._link.connection(), self._schema)

    def position(self) -> Position:
        """Where the log ends now."""
        self._link.say(frame.begin_window(self._settings))
        try:
            here = self._here()
            self._link.commit()
        except BaseException:
            self._link.abandon()
            raise
        return here

    @contextmanager
    def next(self, name: str) -> Generator[Window | None]:
        """The window since this reader's checkpoint, which moves when the block ends well.

        None when somebody else reads under this name just now.  The window and its effects are one
        transaction: after a crash it comes again, whole.
        """
        self._summarize()
        link, schema = self._link, self._schema
        try:
            link.say(frame.begin_window(self._settings))
            turn = {"schema": schema.name, "name": name}
            if not link.ask(statements.take_turn(), turn)[0][0]:
                yield None
            else:
                yield (window := Window(self._checkpoint(name), self._here(), link, schema))
                moved = {"name": name, "position": json.dumps(window.upto.document())}
                link.ask(statements.move_checkpoint(schema), moved)
            link.commit()
        except BaseException:
            link.abandon()
            raise

    @contextmanager
    def between(self, after: Position | None, upto: Position) -> Generator[Window]:
        """The window between two positions, whoever reads it and however often."""
        link = self._link
        self._summarize()
        try:
            link.say(frame.begin_window(self._settings))
            here = self._here()
            for each in (after, upto):
                if each is not None:
                    each.require_home(here)
            yield Window(after, upto, link, self._schema)
            link.commit()
        except BaseException:
            link.abandon()
            raise

    def forget(self, name: str) -> None:
        """Drop a reader's checkpoint: it begins again with everything."""
        begin = frame.begin_write(self._settings)
        self._link.once(begin, statements.drop_checkpoint(self._schema), {"name": name})

    def adopt(self) -> None:
        """Say that the log's transaction numbers are those of this cluster, as after pg_upgrade."""
        begin = frame.begin_write(self._settings)
        self._link.once(begin, statements.adopt(self._schema), {})

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        self._link.close()

    def _here(self) -> Position:
        """Where the log ends in the transaction that was begun."""
        return end_of_log(self._link, self._schema)

    def _checkpoint(self, name: str) -> Position | None:
        rows = self._link.ask(statements.checkpoint(self._schema), {"name": name})
        if not rows or rows[0][0] is None:
            return None
        position = position_of(json.loads(rows[0][0]))
        position.require_home(self._here())
        return position

    def _summarize(self) -> None:
        if monotonic() - self._summarized >= SUMMARIZE_SECONDS:
            self._link.once(
                frame.begin_write(self._settings), statements.summarize(self._schema), {}
            )
            self._summarized = monotonic()


def end_of_log(link: Link, schema: Schema, *, last: bool = False) -> Position:
    """Where the log ends in the transaction that ``link`` has begun.

    A ``last`` window has none after it, so that its transaction may have written before.
    """
    ((standby, wrote, snapshot, system, timeline, home),) = link.ask(statements.here(schema), {})
    if standby:
        raise LogOnStandby
    if wrote and not last:
        raise WroteBefore
    if home is not None and home != system:
        raise ForeignLog(home, system)
    return Position(snapshot, system, timeline)


def bounds(after: Position | None, upto: Position) -> dict[str, object]:
    """A window as the parameters of its statements."""
    return {
        "end": upto.end,
        "begin": 0 if after is None else after.end,
        "open": [] if after is None else list(after.open),
        "after": NOTHING if after is None else after.snapshot,
        "upto": upto.snapshot,
    }


def _entry(row: Row) -> AuditLine:
    _, _, at, kind, detail, job_id, worker = row
    return AuditLine(at, kind, json.loads(detail), job_id, worker)
