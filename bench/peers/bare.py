"""The limit: what PostgreSQL and psycopg can do when a queue is one table and two statements.

It claims a batch, runs it and deletes it.  It keeps no history, has no leases, and loses what it
holds when it dies.  For one key with many producers it does what is usually done: it appends to the
row of the key's job, which every producer must lock.
"""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Any, ClassVar

import psycopg

from ..counter import ran
from .base import Peer, on_time, timed
from .crowd import crowd

TABLES = """
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
create table grouped (
    key   text    primary key,
    items jsonb[] not null
) with (fillfactor = 50);
insert into grouped values ('hot', '{}');
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
# A job has at most 50 items, as leasebook's groups: a row that grew for ever would be slower.
APPEND = """
update grouped
   set items = array_append(case when cardinality(items) < 50 then items else '{}' end, %s::jsonb)
 where key = 'hot'
"""
POLL_SECONDS = 0.005


class Bare(Peer):
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = (
        "select exists (select from jobs where state <> 'done' and run_at <= now())"
    )
    FINISHED: ClassVar[str] = (
        "insert into jobs (payload, state, done_at) "
        "select '{\"t\":0}', 'done', now() from generate_series(1, %(n)s)"
    )
    DELAYED: ClassVar[str] = (
        "insert into jobs (payload, run_at) "
        "select '{\"t\":0}', now() + interval '1 day' from generate_series(1, %(n)s)"
    )
    LACKS = MappingProxyType(
        {
            "latency": "it polls",
            "latency-two": "it polls",
            "idle": "it has one queue, and polls it all the time",
        }
    )

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def setup(self) -> None:
        """Make the tables."""
        self.execute(TABLES)

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

    def hot(self, producers: int, seconds: float, pause: float) -> float:
        """By appending to the one row, which is locked until the commit."""

        def add(connection: psycopg.Connection[Any], number: int) -> object:
            return connection.execute(APPEND, (str(number),), prepare=True)

        return crowd(self.dsn, add, producers, seconds, pause)

    def work(self, many: bool) -> None:
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
