"""Absurd with its worker for threads, which is faster than the one for coroutines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import psycopg

from ..counter import ran
from .base import Peer, on_time_async, run, timed_async

POLL_SECONDS = 0.25
MANY = """
select absurd.spawn_task('default', 'fetch', '{"t": 0}', '{"max_attempts": 5}')
  from generate_series(1, %s)
"""


class Absurd(Peer):
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = (
        "select exists (select from absurd.t_default "
        "where state in ('pending', 'running', 'sleeping'))"
    )
    LACKS: ClassVar = {
        "hot": "it has no groups",
        "growth": "no way to seed its finished jobs",
        "idle": "a worker serves one queue",
    }

    def setup(self) -> None:
        """Its own installer."""
        from absurd_sdk import Absurd as Client

        program = Path(sys.executable).parent / "absurdctl"
        environment = {**os.environ, "ABSURD_DATABASE_URL": self.dsn}
        subprocess.run([program, "init"], env=environment, check=True, capture_output=True)
        Client(self.dsn).create_queue("default")

    def _client(self) -> Any:
        from absurd_sdk import AsyncAbsurd

        client = AsyncAbsurd(self.dsn, queue_name="default")

        @client.register_task(name="fetch")
        async def fetch(params: Any, context: Any) -> None: ...

        return client

    def bulk(self, jobs: int) -> float:
        """It has no call for many: its SQL function, in one statement."""
        with psycopg.connect(self.dsn) as connection:
            began = time.perf_counter()
            connection.execute(MANY, (jobs,))
            connection.commit()
            return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """Each call commits."""

        async def enqueue() -> float:
            client = self._client()
            return await timed_async(lambda: client.spawn("fetch", {"t": 0}), jobs)

        return run(enqueue())

    def paced(self, jobs: int, gap: float) -> None:
        """Its workers poll."""

        async def enqueue() -> None:
            client = self._client()
            await on_time_async(lambda asked: client.spawn("fetch", {"t": asked}), jobs, gap)

        run(enqueue())

    def prepare(self) -> None:
        """Imports."""
        import_module("absurd_sdk")

    def work(self, many: bool) -> None:
        """One worker with a pool of threads."""
        from absurd_sdk import Absurd as Client

        client = Client(self.dsn, queue_name="default")

        @client.register_task(name="fetch")
        def fetch(params: Any, context: Any) -> None:
            ran(params["t"])

        client.start_worker(
            concurrency=self.batch, batch_size=self.batch, poll_interval=POLL_SECONDS
        )
