"""How transactions of others ended, and the bell, on one connection of the notifier's own."""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Link
from .rows import numbers
from .schema.name import Schema
from .settings import Settings
from .statements import frame, workers
from .wakeup import channel

IN_PROGRESS = "in progress"
COMMITTED = "committed"


class PostgresCommits:
    """Answers whether transactions have committed.  Never inside a caller's transaction.

    Connects when it is made.  Everything raises StoreUnavailable when the server cannot be asked,
    DataRefused for a number that is no transaction of this server.
    """

    def __init__(self, dsn: str, schema: Schema, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._link = Link(dsn, self._settings, "leasebook notifier", framed=True)
        self._link.connection()
        self._channel = channel(schema)

    def ring_for(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Wake whoever listens, in any process, if one of these transactions has committed.

        The committed ones, and those that can be forgotten: rolled back, or too old to know.
        """
        asked = {"xids": numbers(xids), "channel": self._channel}
        rows = self._link.once(frame.begin_write(self._settings), workers.ring_for(), asked)
        committed = [xid for xid, status, *_ in rows if status == COMMITTED]
        forgotten = [xid for xid, status, *_ in rows if status not in (COMMITTED, IN_PROGRESS)]
        return committed, forgotten

    def close(self) -> None:
        """Give back the connection."""
        self._link.close()
