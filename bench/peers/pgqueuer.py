"""PGQueuer at its fastest: asyncpg, uvloop, one queue manager."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any, ClassVar

from ..counter import ran
from .base import QUEUES, Peer, on_time_async, run, timed_async


class PGQueuer(Peer):
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = "select exists (select from pgqueuer where execute_after <= now())"
    # It moves a finished job to its log, which has three lines for each.
    FINISHED: ClassVar[str] = (
        "insert into pgqueuer_log (job_id, status, priority, entrypoint) "
        "select -n, status::pgqueuer_status, 0, 'fetch' from generate_series(1, %(n)s) as n, "
        "unnest(array['queued', 'picked', 'successful']) as status"
    )
    DELAYED: ClassVar[str] = (
        "insert into pgqueuer (priority, entrypoint, payload, status, execute_after) "
        "select 0, 'fetch', '0'::bytea, 'queued', now() + interval '1 day' "
        "from generate_series(1, %(n)s)"
    )

    async def _queries(self) -> Any:
        import asyncpg
        from pgqueuer import AsyncpgDriver, Queries

        return Queries(AsyncpgDriver(await asyncpg.connect(self.dsn)))

    def setup(self) -> None:
        """Its own installer."""

        async def install() -> None:
            await (await self._queries()).install()

        run(install())

    def bulk(self, jobs: int) -> float:
        """Its enqueue takes lists."""

        async def enqueue() -> float:
            queries = await self._queries()
            names, payloads, priorities = ["fetch"] * jobs, [b"0"] * jobs, [0] * jobs
            began = time.perf_counter()
            await queries.enqueue(names, payloads, priorities)
            return time.perf_counter() - began

        return run(enqueue())

    def single(self, jobs: int) -> float:
        """Its connection commits every call."""

        async def enqueue() -> float:
            queries = await self._queries()
            return await timed_async(lambda: queries.enqueue("fetch", b"0"), jobs)

        return run(enqueue())

    def paced(self, jobs: int, gap: float) -> None:
        """Each call notifies its workers."""

        async def enqueue() -> None:
            queries = await self._queries()
            await on_time_async(
                lambda asked: queries.enqueue("fetch", str(asked).encode()), jobs, gap
            )

        run(enqueue())

    def prepare(self) -> None:
        """Imports."""
        for name in ("asyncpg", "pgqueuer", "uvloop"):
            import_module(name)

    def work(self, many: bool) -> None:
        """One manager on one connection; an entrypoint is a queue."""

        async def manage() -> None:
            import asyncpg
            from pgqueuer import AsyncpgDriver, Job, PgQueuer

            queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.dsn)))

            async def fetch(job: Job) -> None:
                ran(int(job.payload or b"0"))

            for name in QUEUES if many else ("fetch",):
                queue.entrypoint(name)(fetch)
            await queue.run(batch_size=self.batch)

        run(manage())
