"""Chancy with its executor for coroutines, told to ask again at once while there is work."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ..counter import ran
from .base import QUEUES, Peer, on_time_async, run, timed_async

T = TypeVar("T")
CHUNK = 5_000


async def fetch(*, t: int) -> None:
    """It finds its handlers by module and name."""
    ran(t)


class Chancy(Peer):
    """See ``base.Peer``.  ``batch`` is the queue's concurrency."""

    PENDING: ClassVar[str] = (
        "select exists (select from chancy_jobs "
        "where state in ('pending', 'running', 'retrying') and scheduled_at <= now())"
    )
    LACKS: ClassVar = {"hot": "it has no groups", "growth": "no way to seed its finished jobs"}

    def _opened(self, use: Callable[[Any], Awaitable[T]]) -> T:
        async def opened() -> T:
            import chancy

            async with chancy.Chancy(self.dsn) as app:
                # It tells of every job it takes.
                app.log.setLevel("WARNING")
                return await use(app)

        return run(opened())

    def _job(self, asked: int) -> Any:
        import chancy

        return chancy.job()(fetch).job.with_kwargs(t=asked)

    def setup(self) -> None:
        """Its tables and its queues."""

        async def make(app: Any) -> None:
            import chancy

            await app.migrate()
            for name in ("default", *QUEUES):
                queue = chancy.Queue(
                    name=name,
                    executor=chancy.Chancy.Executor.Async,
                    concurrency=self.batch,
                    eager_polling=True,
                    polling_interval=1,
                    tags={r"idle=.*"} if name in QUEUES else {r"usual=.*"},
                )
                await app.declare(queue, upsert=True)

        self._opened(make)

    def bulk(self, jobs: int) -> float:
        """Its batches."""

        async def enqueue(app: Any) -> float:
            many = [self._job(0) for _ in range(jobs)]
            began = time.perf_counter()
            async for _ in app.push_many(many, batch_size=CHUNK):
                pass
            return time.perf_counter() - began

        return self._opened(enqueue)

    def single(self, jobs: int) -> float:
        """Each call commits."""
        return self._opened(lambda app: timed_async(lambda: app.push(self._job(0)), jobs))

    def paced(self, jobs: int, gap: float) -> None:
        """Each call notifies its workers."""
        self._opened(lambda app: on_time_async(lambda asked: app.push(self._job(asked)), jobs, gap))

    def prepare(self) -> None:
        """Imports."""
        import_module("chancy")

    def work(self, many: bool) -> None:
        """One worker; its tags choose the queues that it serves."""

        async def serve(app: Any) -> None:
            import chancy

            tags = {"idle=yes" if many else "usual=yes"}
            async with chancy.Worker(app, tags=tags, register_signal_handlers=False) as worker:
                await worker.wait_for_shutdown()

        self._opened(serve)
