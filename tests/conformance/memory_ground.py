"""The in-memory database under test."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import UUID

from leasebook.domain.log import Recorded
from leasebook.infra.caller_ports import Order
from leasebook.infra.memory import MemoryDatabase, MemoryLog, MemoryStore
from leasebook.infra.ports import Store
from leasebook.projections.check import KeptRow
from leasebook.projections.status import Summary

from .ground import WAIT_SECONDS_MAX, Accept


class TickingClock:
    """A clock of its own that goes on by a microsecond with each look."""

    def __init__(self, start: datetime) -> None:
        self._at = start

    def __call__(self) -> datetime:
        self._at += timedelta(microseconds=1)
        return self._at


class MemoryGround:
    """Implements ``Ground``."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.database = MemoryDatabase(TickingClock(datetime.now(UTC)), WAIT_SECONDS_MAX)
        self.store_log = MemoryLog(self.database)

    def store(self) -> Store:
        return MemoryStore.on(self.database)

    @contextmanager
    def caller(self) -> Generator[Accept]:
        with self.database.begin() as producer:
            yield producer.accept

    def put_items(self, orders: Sequence[Order], at: datetime) -> None:
        with self.database.begin() as producer:
            producer.accept_at(orders, at)

    def log(self) -> list[Recorded]:
        log = self.store_log
        return [each for job_id in log.job_ids() for each in log.stream(job_id)]

    def rows(self) -> dict[UUID, KeptRow]:
        return {
            row.spec.id: KeptRow(row.seq, (row.spec, row.state), row.has_waiter)
            for row in self.database.jobs()
        }

    def inbox(self) -> int:
        return self.database.items()

    def audit(self) -> list[tuple[str, UUID | None, str | None]]:
        lines = (line.evidence for line in self.database.audit())
        return [(line.kind, line.job_id, line.worker) for line in lines]

    def summaries(self) -> list[Summary]:
        return self.database.summaries()

    def prune(self, older_than: timedelta) -> int:
        return self.database.prune(older_than)

    def somebody_waits(self) -> bool:
        give_up = monotonic() + WAIT_SECONDS_MAX
        while not (waits := self.database.waiting() > 0) and monotonic() < give_up:
            pass
        return waits
