"""How transactions of others ended, and the bell, on one connection of the notifier's own."""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Link
from .schema.name import Schema
from .settings import Settings
from .statements import enqueue, frame, workers
from .wakeup import channel

IN_PROGRESS = "in progress"
COMMITTED = "committed"


class PostgresCommits:
    """Answers whether transactions have committed.  Never inside a caller's transaction.

    Every method raises StoreUnavailable when the server cannot be asked, DataRefused for a number
    that is no transaction of this server.
    """

    def __init__(self, dsn: str, schema: Schema, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._link = Link(dsn, self._settings, "leasebook notifier")
        self._channel = channel(schema)

    def ended(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """The committed ones, and those that can be forgotten: rolled back, or too old to know."""
        begin = frame.begin_look(self._settings)
        rows = self._link.once(begin, enqueue.outcomes(), {"xids": list(xids)})
        committed = [xid for xid, status in rows if status == COMMITTED]
        forgotten = [xid for xid, status in rows if status not in (COMMITTED, IN_PROGRESS)]
        return committed, forgotten

    def ring(self) -> None:
        """Wake whoever listens, in any process."""
        begin = frame.begin_light(self._settings)
        self._link.once(begin, workers.ring(), {"channel": self._channel})

    def close(self) -> None:
        """Give back the connection."""
        self._link.close()
