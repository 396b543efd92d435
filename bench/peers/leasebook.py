"""leasebook, through what everybody uses: the book's job type and the command ``worker``."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any, ClassVar

from .base import on_time, timed

CHUNK = 10_000
DAY_SECONDS = 86_400.0

# Finished jobs leave three events each, and nothing else.  Ids are in order of time, as UUIDv7 are.
FINISHED = """
insert into leasebook.job_events (job_id, version, at, kind, due_at, lease, worker, data)
select id::uuid, version, now(), kind, now(), lease, worker, data::json
  from (select n, lpad(to_hex(1700000000000 + n), 12, '0') || '7'
                  || substr(md5(n::text), 1, 19) as id
          from generate_series(1, %(n)s) as n) as job
 cross join (values
       (1, 'enqueued.v1', null::bigint, null, '{"name":"fetch","queue":"default","priority":5,'
           '"retries":3,"timeout":600.0,"lease":600.0,"on_exhausted":"hold","args":{"t":0}}'),
       (2, 'leased.v1', null, 'bench#000000000000', '{"start":1}'),
       (3, 'completed.v1', 2, null, null)) as event (version, kind, lease, worker, data)
 order by n, version
"""


class Leasebook:
    """See ``base.Peer``.  ``batch`` is the worker's concurrency."""

    PENDING: ClassVar[str] = (
        "select exists (select from leasebook.jobs where due_at <= now() or state = 'leased')"
    )
    SEED_FINISHED: ClassVar[str] = FINISHED

    def __init__(self, dsn: str, batch: int) -> None:
        self.dsn = dsn
        self.batch = batch
        os.environ["LEASEBOOK_DSN"] = dsn

    def _jobs(self) -> Any:
        from .. import jobs

        return jobs

    def setup(self) -> None:
        """Its migrations."""
        self._jobs().book.migrate()

    def bulk(self, jobs: int) -> float:
        """Everything in one transaction."""
        import psycopg

        fetch = self._jobs().fetch
        with psycopg.connect(self.dsn) as connection:
            began = time.perf_counter()
            fetch.enqueue_many(connection, [0] * jobs)
            connection.commit()
            return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """Each in its own transaction, with a wake-up for the workers."""
        import psycopg

        fetch = self._jobs().fetch
        with psycopg.connect(self.dsn) as connection:

            def once() -> None:
                fetch.enqueue(connection, 0)
                connection.commit()

            return timed(once, jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """As ``single``, with the time."""
        import psycopg

        fetch = self._jobs().fetch
        with psycopg.connect(self.dsn) as connection:

            def once(asked: int) -> None:
                fetch.enqueue(connection, asked)
                connection.commit()

            on_time(once, jobs, gap)

    def delayed(self, jobs: int) -> None:
        """Due tomorrow."""
        import psycopg

        fetch = self._jobs().fetch
        with psycopg.connect(self.dsn) as connection:
            for _ in range(0, jobs, CHUNK):
                fetch.enqueue_many(connection, [0] * CHUNK, delay=DAY_SECONDS)
                connection.commit()

    def claim_milliseconds(self, times: int) -> list[float]:
        """How long the worker's claim of a batch takes, each rolled back."""
        from leasebook.infra.ports import Claim

        wanted = Claim(("default",), ("fetch",), self.batch, 1)
        store = self._jobs().book.store()
        taken: list[float] = []
        for _ in range(times):
            try:
                with store.transaction() as transaction:
                    began = time.perf_counter()
                    claimed = transaction.claim(wanted)
                    taken.append((time.perf_counter() - began) * 1_000)
                    assert len(claimed) == self.batch
                    raise _RolledBack
            except _RolledBack:
                pass
        store.close()
        return taken

    def prepare(self) -> None:
        """Imports."""
        import_module("leasebook.infra.cli.worker")
        self._jobs()

    def work(self) -> None:
        """``leasebook worker``, in this process, so that the counter is at hand."""
        from leasebook.infra.cli import main

        concurrency = str(self.batch)
        main(["worker", "bench.jobs:book", "--concurrency", concurrency, "--log-level", "warning"])


class _RolledBack(Exception):
    """Ends a transaction without a trace."""
