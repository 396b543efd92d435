"""leasebook, through what everybody uses: the book's job types and the command ``worker``."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar

import psycopg

from .base import Peer, on_time, timed
from .crowd import crowd

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


class Leasebook(Peer):
    """See ``base.Peer``.  ``batch`` is the worker's concurrency."""

    PENDING: ClassVar[str] = (
        "select exists (select from leasebook.jobs "
        "where state = 'leased' or (due_at <= now() and not held))"
    )
    FINISHED: ClassVar[str] = FINISHED
    LACKS = MappingProxyType({})

    def __init__(self, dsn: str, batch: int) -> None:
        super().__init__(dsn, batch)
        os.environ["LEASEBOOK_DSN"] = dsn

    def _jobs(self) -> Any:
        from .. import jobs

        return jobs

    def setup(self) -> None:
        """Its migrations."""
        self._jobs().book.migrate()

    def bulk(self, jobs: int) -> float:
        """Everything in one transaction."""
        fetch = self._jobs().fetch
        with psycopg.connect(self.dsn) as connection:
            began = time.perf_counter()
            fetch.enqueue_many(connection, [0] * jobs)
            connection.commit()
            return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """Each in its own transaction, with a wake-up for the workers."""
        with self._alone() as (fetch, alone):
            return timed(lambda: fetch.enqueue(alone, 0), jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """As ``single``, with the time."""
        with self._alone() as (fetch, alone):
            on_time(lambda asked: fetch.enqueue(alone, asked), jobs, gap)

    @contextmanager
    def _alone(self) -> Generator[tuple[Any, Any]]:
        # Other queues run this module without having leasebook.
        from leasebook import Autocommit

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            yield self._jobs().fetch, Autocommit(connection)

    def delayed(self, jobs: int) -> None:
        """Due tomorrow."""
        self._many(self._jobs().fetch, jobs, delay=DAY_SECONDS)

    def keyed(self, jobs: int) -> None:
        """The first is due tomorrow, and the others wait for it."""
        fetch = self._jobs().fetch
        self._many(fetch, 1, delay=DAY_SECONDS, ordering_key="one")
        self._many(fetch, jobs - 1, ordering_key="one")
        self._drain()

    def held(self, jobs: int) -> None:
        """Failed for good."""
        self._many(self._jobs().fail, jobs)
        self._drain()

    def hot(self, producers: int, seconds: float, pause: float) -> float:
        """Each item in its own transaction, into the inbox of the group."""
        gather = self._jobs().gather

        def add(connection: psycopg.Connection[Any], number: int) -> object:
            return gather.enqueue(connection, number, group_key="hot")

        return crowd(self.dsn, add, producers, seconds, pause)

    def writers(self, producers: int, seconds: float, ringing: bool) -> float:
        """Each job in its own transaction; a book may be told not to ring."""
        fetch = self._jobs().fetch if ringing else self._jobs().fetch_silently

        def add(connection: psycopg.Connection[Any], number: int) -> object:
            return fetch.enqueue(connection, 0)

        return crowd(self.dsn, add, producers, seconds, 0.0)

    def claim_milliseconds(self, times: int) -> list[float]:
        """How long the worker's claim of a batch takes, each rolled back."""
        from leasebook.infra.enrolment import Enrolment
        from leasebook.infra.ports import Claim

        store, worker = self._jobs().book.store(), "bench#claims"
        store.enroll(Enrolment(worker, "bench", "", 0, self.batch, ("default",), "", ("fetch",)))
        wanted = Claim(("default",), ("fetch",), self.batch, 1, worker=worker)
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
        store.leave(worker)
        store.close()
        return taken

    def prepare(self) -> None:
        """Imports."""
        import_module("leasebook.infra.cli.worker")
        self._jobs()

    def work(self, many: bool) -> None:
        """``leasebook worker``, in this process, so that the counter is at hand."""
        self._worker("many" if many else "book", "--concurrency", str(self.batch))

    def _worker(self, book: str, *options: str) -> None:
        from leasebook.infra.cli.commands import main

        main(["worker", f"bench.jobs:{book}", *options, "--log-level", "critical"])

    def _drain(self) -> None:
        try:
            self._worker("book", "--concurrency", str(self.batch), "--drain")
        except SystemExit as end:
            if end.code:
                raise

    def _many(self, job: Any, jobs: int, **options: Any) -> None:
        with psycopg.connect(self.dsn) as connection:
            for start in range(0, jobs, CHUNK):
                job.enqueue_many(connection, [0] * min(CHUNK, jobs - start), **options)
                connection.commit()


class _RolledBack(Exception):
    """Ends a transaction without a trace."""
