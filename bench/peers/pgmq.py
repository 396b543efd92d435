"""pgmq without its extension: what pgmq.send, read and delete execute, sent by psycopg."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import ClassVar

import psycopg

from ..counter import ran
from .base import Peer, on_time, timed

TABLES = """
create table q_bench (
    msg_id      bigint generated always as identity primary key,
    read_ct     int         not null default 0,
    enqueued_at timestamptz not null default now(),
    vt          timestamptz not null,
    message     jsonb,
    headers     jsonb
);
create index on q_bench (vt);
create table a_bench (
    msg_id      bigint primary key,
    read_ct     int         not null default 0,
    enqueued_at timestamptz not null default now(),
    archived_at timestamptz not null default now(),
    vt          timestamptz not null,
    message     jsonb,
    headers     jsonb
);
create index on a_bench (archived_at);
"""
READ = """
with taken as (
    select msg_id from q_bench where vt <= clock_timestamp()
     order by msg_id limit %s for update skip locked
)
update q_bench as q
   set vt = clock_timestamp() + interval '30 seconds', read_ct = read_ct + 1
  from taken where q.msg_id = taken.msg_id
returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
"""
DELETE = "delete from q_bench where msg_id = any (%s) returning msg_id"
SEND = """
insert into q_bench (vt, message)
values (clock_timestamp(), jsonb_build_object('t', %s::bigint)) returning msg_id
"""
SEND_BATCH = """
insert into q_bench (vt, message)
select clock_timestamp(), unnest(%s::jsonb[]) returning msg_id
"""
#: The pause of pgmq.read_with_poll.
POLL_SECONDS = 0.1


class Pgmq(Peer):
    """See ``base.Peer``."""

    PENDING: ClassVar[str] = (
        "select exists (select from q_bench where vt < now() + interval '1 hour')"
    )
    FINISHED: ClassVar[str] = (
        "insert into a_bench (msg_id, vt, message) "
        "select -n, now(), '{\"t\":0}' from generate_series(1, %(n)s) as n"
    )
    DELAYED: ClassVar[str] = (
        "insert into q_bench (vt, message) "
        "select now() + interval '1 day', '{\"t\":0}' from generate_series(1, %(n)s)"
    )
    LACKS = MappingProxyType({"hot": "it has no groups", "idle": "a reader polls one queue"})

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def setup(self) -> None:
        """The tables of one queue."""
        self.execute(TABLES)

    def bulk(self, jobs: int) -> float:
        """As pgmq.send_batch."""
        messages = ['{"t":0}'] * jobs
        with self._connect() as connection:
            began = time.perf_counter()
            connection.execute(SEND_BATCH, (messages,)).fetchall()
            return time.perf_counter() - began

    def single(self, jobs: int) -> float:
        """As pgmq.send."""
        with self._connect() as connection:
            return timed(lambda: connection.execute(SEND, (0,), prepare=True), jobs)

    def paced(self, jobs: int, gap: float) -> None:
        """As ``single``, with the time."""
        with self._connect() as connection:
            on_time(lambda asked: connection.execute(SEND, (asked,), prepare=True), jobs, gap)

    def work(self, many: bool) -> None:
        """Read, run, delete; poll when there is nothing."""
        with self._connect() as connection:
            while True:
                rows = connection.execute(READ, (self.batch,), prepare=True, binary=True).fetchall()
                for row in rows:
                    ran(row[4]["t"])
                if rows:
                    connection.execute(DELETE, ([row[0] for row in rows],), prepare=True)
                else:
                    time.sleep(POLL_SECONDS)
