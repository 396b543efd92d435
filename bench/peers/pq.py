"""python-pq, which forks a process for every job."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, ClassVar

from psycopg.conninfo import conninfo_to_dict

from ..counter import ran
from .base import WARM_UP, Peer, on_time, timed

POLL_SECONDS = 0.05
VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}


def fetch(t: int) -> None:
    """It finds its handlers by module and name."""
    ran(t)


class Pq(Peer):
    """See ``base.Peer``.  ``batch`` is how many processes run at once."""

    PENDING: ClassVar[str] = (
        "select exists (select from pq_tasks where status in ('PENDING', 'RUNNING'))"
    )
    LACKS: ClassVar = {
        "hot": "it has no groups",
        "growth": "no way to seed its finished jobs",
        "idle": "it has no queues",
    }

    def _queue(self) -> Any:
        import loguru
        from pq import PQ

        loguru.logger.remove()
        # Its migrations stumble over the percent signs of a URL with a folder in it.
        parts = conninfo_to_dict(self.dsn)
        for name, variable in VARIABLES.items():
            if parts.get(name):
                os.environ[variable] = str(parts[name])
        return PQ(f"postgresql+psycopg:///{parts['dbname']}")

    def setup(self) -> None:
        """Its migrations."""
        self._queue().run_db_migrations()

    def bulk(self, jobs: int) -> float:
        """It has no call for many, so one by one."""
        queue = self._queue()
        return timed(lambda: queue.enqueue(fetch, t=0), jobs - WARM_UP)

    def single(self, jobs: int) -> float:
        """Each call commits."""
        queue = self._queue()
        return timed(lambda: queue.enqueue(fetch, t=0), jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """Its workers poll."""
        queue = self._queue()
        on_time(lambda asked: queue.enqueue(fetch, t=asked), jobs, gap)

    def prepare(self) -> None:
        """Imports."""
        import_module("pq")

    def work(self, many: bool) -> None:
        """One worker."""
        self._queue().run_worker(concurrency=self.batch, poll_interval=POLL_SECONDS)
