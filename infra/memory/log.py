"""The log of an in-memory database, as readers see it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ...domain.log import Recorded
from .database import MemoryDatabase
from .reading import recorded


class MemoryLog:
    """Implements ``ports.Log``: what is committed, and nothing else."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._hub = database.hub

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of one job in order of version; empty when there is none."""
        with self._hub.condition:
            return recorded(job_id, self._hub.tables.events.get(job_id, ()))

    def job_ids(self) -> list[UUID]:
        """Every job that the log tells of, in order of id."""
        with self._hub.condition:
            return sorted(self._hub.tables.events)
