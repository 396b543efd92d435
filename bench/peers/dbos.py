"""DBOS: a workflow that does nothing, on a queue that is looked at every 50 ms."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any, ClassVar

from ..counter import ran
from .base import QUEUES, Peer, on_time, timed

POOL = 20
POLL_SECONDS = 0.05
WHERE: dict[str, Any] = {"queue_name": "default", "workflow_name": "fetch", "app_version": "1"}


class Dbos(Peer):
    """See ``base.Peer``.  ``batch`` is what a worker runs at once."""

    PENDING: ClassVar[str] = (
        "select exists (select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING'))"
    )
    LACKS: ClassVar = {"hot": "it has no groups", "growth": "no way to seed its finished jobs"}

    @property
    def _url(self) -> str:
        return self.dsn.replace("postgresql://", "postgresql+psycopg://")

    def _client(self) -> Any:
        from dbos import DBOSClient

        return DBOSClient(system_database_url=self._url)

    def _launch(self, many: bool = False) -> Any:
        from dbos import DBOS

        DBOS(
            config={
                "name": "bench",
                "system_database_url": self._url,
                "sys_db_pool_size": POOL,
                "run_admin_server": False,
                "application_version": "1",
                "log_level": "WARNING",
            }
        )

        @DBOS.workflow(name="fetch")
        async def fetch(t: int) -> None:
            ran(t)

        DBOS.launch()
        for name in QUEUES if many else ("default",):
            DBOS.register_queue(
                name, worker_concurrency=self.batch, polling_interval_sec=POLL_SECONDS
            )
        return DBOS

    def setup(self) -> None:
        """Its first launch makes its tables."""
        self._launch().destroy()

    def bulk(self, jobs: int) -> float:
        """It has no call for many: all in one transaction."""
        import sqlalchemy

        client, engine = self._client(), sqlalchemy.create_engine(self._url)
        began = time.perf_counter()
        with engine.begin() as connection:
            for _ in range(jobs):
                client.enqueue_in_transaction(connection, WHERE, 0)
        return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """Each call commits."""
        client = self._client()
        return timed(lambda: client.enqueue(WHERE, 0), jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """Its workers poll."""
        client = self._client()
        on_time(lambda asked: client.enqueue(WHERE, asked), jobs, gap)

    def prepare(self) -> None:
        """Imports."""
        import_module("dbos")

    def work(self, many: bool) -> None:
        """It works in threads of its own."""
        self._launch(many)
        while True:
            time.sleep(1)
