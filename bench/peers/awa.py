"""awa, whose core is in Rust."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ..counter import ran
from .base import QUEUES, Peer, on_time_async, timed_async

T = TypeVar("T")
CONNECTIONS = 30
CLAIM_MAX = 512
POLL_MILLISECONDS = 200
SETTLE_SECONDS = 3.0
COUNTED = """
(select coalesce(sum(cardinality(job_ids)), 0) from awa.receipt_completion_batches)
+ (select count(*) from awa.done_entries)
"""


@dataclass
class Fetch:
    """The arguments of its one kind of job."""

    t: int


class Awa(Peer):
    """See ``base.Peer``.  ``batch`` is its number of workers."""

    PENDING: ClassVar[str] = f"select (select count(*) from awa.ready_entries) > {COUNTED}"

    def _opened(self, use: Callable[[Any], Awaitable[T]]) -> T:
        async def opened() -> T:
            import awa

            client = awa.AsyncClient(self.dsn, max_connections=CONNECTIONS)
            answer = await use(client)
            await client.close()
            return answer

        return asyncio.run(opened())

    def _queue(self, name: str) -> dict[str, object]:
        batch = min(CLAIM_MAX, self.batch)
        return {
            "name": name,
            "max_workers": self.batch,
            "claimers": 1,
            "claim_batch_size": batch,
        }

    def setup(self) -> None:
        """Its migrations, and a first start, which chooses its faster storage."""

        async def make(client: Any) -> None:
            await client.migrate()
            client.task(Fetch, queue="default")(_nothing)
            await client.start([("default", 10)])
            await asyncio.sleep(SETTLE_SECONDS)
            await client.shutdown()

        self._opened(make)

    def bulk(self, jobs: int) -> float:
        """By COPY."""

        async def enqueue(client: Any) -> float:
            many = [Fetch(0)] * jobs
            began = time.perf_counter()
            await client.enqueue_many_copy(many, queue="default")
            return time.perf_counter() - began

        return self._opened(enqueue)

    def single(self, jobs: int) -> float:
        """Each call commits."""
        return self._opened(
            lambda client: timed_async(lambda: client.insert(Fetch(0), queue="default"), jobs)
        )

    def paced(self, jobs: int, gap: float) -> None:
        """Each call notifies its workers."""
        self._opened(
            lambda client: on_time_async(
                lambda asked: client.insert(Fetch(asked), queue="default"), jobs, gap
            )
        )

    def finished(self, jobs: int) -> None:
        """Really run: what a job leaves lies in several tables."""
        self.bulk(jobs)
        done = 0

        async def drain(client: Any) -> None:
            async def count(job: Any) -> None:
                nonlocal done
                done += 1

            client.task(Fetch, queue="default")(count)
            await client.start([self._queue("default")])
            while done < jobs:
                await asyncio.sleep(0.2)
            await asyncio.sleep(SETTLE_SECONDS)
            await client.shutdown()

        self._opened(drain)

    def delayed(self, jobs: int) -> None:
        """By COPY too."""
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        self._opened(
            lambda client: client.enqueue_many_copy(
                [Fetch(0)] * jobs, queue="default", run_at=tomorrow
            )
        )

    def prepare(self) -> None:
        """Imports."""
        import_module("awa")

    def work(self, many: bool) -> None:
        """One runtime."""

        async def serve(client: Any) -> None:
            async def fetch(job: Any) -> None:
                ran(job.args.t)

            queues = QUEUES if many else ("default",)
            for name in queues:
                client.task(Fetch, queue=name)(fetch)
            await client.start(
                [self._queue(name) for name in queues], poll_interval_ms=POLL_MILLISECONDS
            )
            await asyncio.Event().wait()

        self._opened(serve)


async def _nothing(job: Any) -> None:
    """A handler for the first start."""
