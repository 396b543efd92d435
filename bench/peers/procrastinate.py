"""Procrastinate with its psycopg connector, ten jobs at once: more make it no faster."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from ..counter import ran
from .base import QUEUES, Peer, on_time_async, run, timed_async

T = TypeVar("T")
CHUNK = 5_000


class Procrastinate(Peer):
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = (
        "select exists (select from procrastinate_jobs where status = 'doing' "
        "or (status = 'todo' and (scheduled_at is null or scheduled_at <= now())))"
    )
    # Without its triggers, which would do the same a row at a time; three events a finished job.
    FINISHED: ClassVar[str] = """
        with jobs as (
            insert into procrastinate_jobs (queue_name, task_name, args, status, attempts)
            select 'default', 'fetch', '{"t":0}', 'succeeded', 1 from generate_series(1, %(n)s)
            returning id
        )
        insert into procrastinate_events (job_id, type)
        select id, kind::procrastinate_job_event_type
          from jobs, unnest(array['deferred', 'started', 'succeeded']) as kind
    """
    DELAYED: ClassVar[str] = (
        "insert into procrastinate_jobs (queue_name, task_name, args, status, scheduled_at) "
        "select 'default', 'fetch', '{\"t\":0}', 'todo', now() + interval '1 day' "
        "from generate_series(1, %(n)s)"
    )

    def _seed(self, statement: str, jobs: int) -> None:
        import psycopg

        with psycopg.connect(self.dsn) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute(statement.encode(), {"n": jobs})

    def finished(self, jobs: int) -> None:
        """Written directly."""
        self._seed(self.FINISHED, jobs)

    def delayed(self, jobs: int) -> None:
        """Written directly."""
        self._seed(self.DELAYED, jobs)

    def _opened(self, use: Callable[[Any, Any], Awaitable[T]]) -> T:
        async def opened() -> T:
            from procrastinate import App, PsycopgConnector

            size = self.batch + 2
            app = App(connector=PsycopgConnector(conninfo=self.dsn, min_size=size, max_size=size))

            @app.task(name="fetch")
            async def fetch(t: int) -> None:
                ran(t)

            async with app.open_async():
                return await use(app, fetch)

        return run(opened())

    def setup(self) -> None:
        """Its schema."""
        self._opened(lambda app, _: app.schema_manager.apply_schema_async())

    def bulk(self, jobs: int) -> float:
        """Its batches."""

        async def enqueue(_: Any, fetch: Any) -> float:
            chunk = [{"t": 0}] * min(CHUNK, jobs)
            began = time.perf_counter()
            for start in range(0, jobs, CHUNK):
                await fetch.batch_defer_async(*chunk[: jobs - start])
            return time.perf_counter() - began

        return self._opened(enqueue)

    def single(self, jobs: int) -> float:
        """Each call commits."""
        return self._opened(lambda _, fetch: timed_async(lambda: fetch.defer_async(t=0), jobs))

    def paced(self, jobs: int, gap: float) -> None:
        """A trigger notifies its workers."""
        self._opened(
            lambda _, fetch: on_time_async(lambda asked: fetch.defer_async(t=asked), jobs, gap)
        )

    def prepare(self) -> None:
        """Imports."""
        import_module("procrastinate")

    def work(self, many: bool) -> None:
        """One worker."""
        queues = list(QUEUES) if many else ["default"]
        self._opened(
            lambda app, _: app.run_worker_async(queues=queues, concurrency=self.batch, wait=True)
        )
