"""Where a replay reads: a database in use, or a bundle."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from attrs import frozen

from ...bundle.reader import BundleHistory
from ...postgres.history import PostgresHistory
from ...postgres.position import Position
from ...postgres.windows import PostgresWindows
from ...replay_ports import History
from ..options import plain_book

#: Somebody's snapshot that is older slows the queue down already.
OLD_SNAPSHOT_SECONDS = 60.0


@frozen
class Source:
    """What was named: a bundle, or a database and how it may be read."""

    dsn: str | None
    schema: str
    bundle: Path | None
    events_max: int
    anyway: bool


@contextmanager
def opened(source: Source, *, pinned: bool = False) -> Generator[tuple[History, Position | None]]:
    """The history, and, of a database that is ``pinned``, the snapshot that sees all of it.

    Raises SchemaIncomplete, and OldSnapshot unless it is to be read anyway.
    """
    if source.bundle is not None:
        with BundleHistory(source.bundle) as bundle:
            yield bundle, None
        return
    with plain_book(source.dsn, source.schema) as book:
        position = _position(book.dsn, book.schema) if pinned else None
        history = PostgresHistory(book.dsn, book.schema, source.events_max, upto=position)
        with closing(history):
            history.require_schema()
            if not source.anyway:
                history.require_calm(OLD_SNAPSHOT_SECONDS)
            yield history, position


def _position(dsn: str, schema: str) -> Position:
    with closing(PostgresWindows(dsn, schema)) as windows:
        windows.require_schema()
        return windows.position()
