"""The log in PostgreSQL, as readers see it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ...domain.log import Recorded
from .connection import Link
from .rows import recorded, uuids
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import frame, look


class PostgresLog:
    """Implements ``ports.Log``: what is committed, and nothing else.  One thread uses one log."""

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        *,
        application_name: str = "leasebook log",
        settings: Settings | None = None,
    ) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings()
        self._link = Link(dsn, self._settings, application_name)

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of one job in order of version; empty when there is none."""
        begin = frame.begin_look(self._settings)
        params = {"ids": uuids([job_id])}
        rows = self._link.once(begin, look.streams(self._schema), params)
        return tuple(recorded(row) for row in rows)

    def close(self) -> None:
        """Give back the connection."""
        self._link.close()
