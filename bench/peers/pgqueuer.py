"""PGQueuer at its fastest: asyncpg, uvloop, one queue manager."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ..counter import ran
from .base import on_time_async, timed_async

T = TypeVar("T")


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    import uvloop

    return uvloop.run(coroutine)


class PGQueuer:
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = "select exists (select from pgqueuer where execute_after <= now())"
    # It moves a finished job to its log, which has three lines for each.
    SEED_FINISHED: ClassVar[str] = (
        "insert into pgqueuer_log (job_id, status, priority, entrypoint) "
        "select -n, status::pgqueuer_status, 0, 'fetch' from generate_series(1, %(n)s) as n, "
        "unnest(array['queued', 'picked', 'successful']) as status"
    )

    def __init__(self, dsn: str, batch: int) -> None:
        self.dsn = dsn
        self.batch = batch

    async def _queries(self) -> Any:
        import asyncpg
        from pgqueuer import AsyncpgDriver, Queries

        return Queries(AsyncpgDriver(await asyncpg.connect(self.dsn)))

    def setup(self) -> None:
        """Its own installer."""

        async def install() -> None:
            await (await self._queries()).install()

        _run(install())

    def bulk(self, jobs: int) -> float:
        """Its enqueue takes lists."""

        async def enqueue() -> float:
            queries = await self._queries()
            names, payloads, priorities = ["fetch"] * jobs, [b"0"] * jobs, [0] * jobs
            began = time.perf_counter()
            await queries.enqueue(names, payloads, priorities)
            return time.perf_counter() - began

        return _run(enqueue())

    def single(self, jobs: int) -> float:
        """Its connection commits every call."""

        async def enqueue() -> float:
            queries = await self._queries()
            return await timed_async(lambda: queries.enqueue("fetch", b"0"), jobs)

        return _run(enqueue())

    def paced(self, jobs: int, gap: float) -> None:
        """Each call notifies its workers."""

        async def enqueue() -> None:
            queries = await self._queries()
            await on_time_async(
                lambda asked: queries.enqueue("fetch", str(asked).encode()), jobs, gap
            )

        _run(enqueue())

    def delayed(self, jobs: int) -> None:
        """Due tomorrow."""
        from datetime import timedelta

        async def enqueue() -> None:
            queries = await self._queries()
            tomorrow = [timedelta(days=1)] * jobs
            await queries.enqueue(["fetch"] * jobs, [b"0"] * jobs, [0] * jobs, tomorrow)

        _run(enqueue())

    def prepare(self) -> None:
        """Imports."""
        for name in ("asyncpg", "pgqueuer", "uvloop"):
            import_module(name)

    def work(self) -> None:
        """One manager on one connection."""

        async def manage() -> None:
            import asyncpg
            from pgqueuer import AsyncpgDriver, Job, PgQueuer

            queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.dsn)))

            @queue.entrypoint("fetch")
            async def fetch(job: Job) -> None:
                ran(int(job.payload or b"0"))

            await queue.run(batch_size=self.batch)

        _run(manage())
