"""Oban for Python, without its licensed add-on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

from ..counter import ran
from .base import QUEUES, Peer, on_time_async, run, timed_async

T = TypeVar("T")
POOL = 2


def _worker() -> Any:
    """Its worker class; it is found again by its module and name."""
    from oban import worker

    class Fetch:
        async def process(self, job: Any) -> None:
            ran(job.args["t"])

    Fetch.__qualname__ = "Fetch"
    return worker(queue="default")(Fetch)


class Oban(Peer):
    """See ``base.Peer``.  ``batch`` is the limit of its queue."""

    PENDING: ClassVar[str] = (
        "select exists (select from oban_jobs "
        "where state in ('available', 'executing', 'retryable'))"
    )
    FINISHED: ClassVar[str] = (
        "insert into oban_jobs (state, worker, args, attempt, attempted_at, completed_at, "
        "attempted_by) select 'completed', 'bench.peers.oban.Fetch', '{\"t\":0}', 1, "
        "timezone('UTC', now()), timezone('UTC', now()), array['node', 'uuid'] "
        "from generate_series(1, %(n)s)"
    )
    DELAYED: ClassVar[str] = (
        "insert into oban_jobs (state, worker, args, scheduled_at) "
        "select 'scheduled', 'bench.peers.oban.Fetch', '{\"t\":0}', "
        "timezone('UTC', now()) + interval '1 day' from generate_series(1, %(n)s)"
    )

    def _opened(self, use: Callable[[Any, Any], Awaitable[T]], queues: Any = None) -> T:
        async def opened() -> T:
            from oban import Oban as Client

            fetch = _worker()
            pool = await Client.create_pool(self.dsn, min_size=POOL, max_size=POOL)
            async with Client(pool=pool, **({"queues": queues} if queues else {})) as oban:
                answer = await use(oban, fetch)
            await pool.close()
            return answer

        return run(opened())

    def setup(self) -> None:
        """Its schema."""

        async def make() -> None:
            from oban import Oban as Client
            from oban.schema import install

            pool = await Client.create_pool(self.dsn, min_size=POOL, max_size=POOL)
            await install(pool)
            await pool.close()

        run(make())

    def bulk(self, jobs: int) -> float:
        """Its call for many."""

        async def enqueue(oban: Any, fetch: Any) -> float:
            many = [fetch.new({"t": 0}) for _ in range(jobs)]
            began = time.perf_counter()
            await oban.enqueue_many(many)
            return time.perf_counter() - began

        return self._opened(enqueue)

    def single(self, jobs: int) -> float:
        """Each call commits."""
        return self._opened(
            lambda oban, fetch: timed_async(lambda: oban.enqueue(fetch.new({"t": 0})), jobs)
        )

    def paced(self, jobs: int, gap: float) -> None:
        """Each call notifies its workers."""
        self._opened(
            lambda oban, fetch: on_time_async(
                lambda asked: oban.enqueue(fetch.new({"t": asked})), jobs, gap
            )
        )

    def prepare(self) -> None:
        """Imports, and its worker by name."""
        _worker()

    def work(self, many: bool) -> None:
        """One node."""
        queues = dict.fromkeys(QUEUES if many else ("default",), self.batch)
        self._opened(lambda oban, fetch: asyncio.Event().wait(), queues)
