"""The limit: what PostgreSQL and psycopg can do when a queue is one table and two statements.

It claims a batch, runs it and deletes it.  It keeps no history, has no leases, and loses what it
holds when it dies.
"""

from __future__ import annotations

import time
from typing import ClassVar

import psycopg

from ..counter import ran
from .base import on_time, timed

TABLE = """
create table jobs (
    id       bigint      generated always as identity primary key,
    queue    text        not null default 'default',
    priority int         not null default 0,
    state    text        not null default 'queued',
    run_at   timestamptz not null default now(),
    payload  jsonb       not null,
    done_at  timestamptz
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
create index jobs_ready on jobs (queue, priority desc, id) where state = 'queued';
"""
# The limit is a literal: with a parameter a generic plan expects a tenth of the table.
CLAIM = """
update jobs set state = 'running'
 where id in (select id from jobs
               where queue = 'default' and state = 'queued' and run_at <= now()
               order by priority desc, id
               limit {} for update skip locked)
returning id, payload
"""
DELETE = "delete from jobs where id = any (%s)"
POLL_SECONDS = 0.005


class Bare:
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = (
        "select exists (select from jobs where state <> 'done' and run_at <= now())"
    )
    SEED_FINISHED: ClassVar[str] = (
        "insert into jobs (payload, state, done_at) "
        "select '{\"t\":0}', 'done', now() from generate_series(1, %(n)s)"
    )

    def __init__(self, dsn: str, batch: int) -> None:
        self.dsn = dsn
        self.batch = batch

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def setup(self) -> None:
        """Make the table."""
        with self._connect() as connection:
            connection.execute(TABLE)

    def bulk(self, jobs: int) -> float:
        """By COPY."""
        with self._connect() as connection:
            began = time.perf_counter()
            with connection.cursor().copy("copy jobs (payload) from stdin") as copy:
                for _ in range(jobs):
                    copy.write_row(('{"t":0}',))
            return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """By INSERT."""
        statement = "insert into jobs (payload) values ('{\"t\":0}') returning id"
        with self._connect() as connection:
            return timed(lambda: connection.execute(statement, prepare=True), jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """By INSERT; the worker polls."""
        statement = "insert into jobs (payload) values (jsonb_build_object('t', %s::bigint))"
        with self._connect() as connection:
            on_time(lambda asked: connection.execute(statement, (asked,)), jobs, gap)

    def delayed(self, jobs: int) -> None:
        """Due tomorrow."""
        with self._connect() as connection:
            connection.execute(
                "insert into jobs (payload, run_at) "
                "select '{\"t\":0}', now() + interval '1 day' from generate_series(1, %s)",
                (jobs,),
            )

    def prepare(self) -> None:
        """Everything is imported already."""

    def work(self) -> None:
        """Claim, run, delete."""
        claim = CLAIM.format(self.batch)
        with self._connect() as connection:
            while True:
                rows = connection.execute(claim, prepare=True, binary=True).fetchall()
                for _, payload in rows:
                    ran(payload["t"])
                if rows:
                    connection.execute(DELETE, ([row[0] for row in rows],), prepare=True)
                else:
                    time.sleep(POLL_SECONDS)
