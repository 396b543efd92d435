"""Producers and workers that go on while something else happens, and who waits because of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from time import monotonic
from typing import Any

import psycopg
from attrs import define, field

WRITERS = 2
WAIT_SECONDS = 60.0

#: Who waits for a lock on the claim table, since when, and for which lock.
WAITING = """
select l.pid, l.mode, l.waitstart, extract(epoch from clock_timestamp() - l.waitstart)::float8
  from pg_locks as l
 where not l.granted and l.relation = 'leasebook.jobs'::regclass and l.waitstart is not null
"""


BIRTH = """
with logged as (
    insert into leasebook.job_events (job_id, version, at, kind, due_at, data)
    values (gen_random_uuid(), 1, now(), 'enqueued.v1', now(), '{}')
    returning job_id, event_id
)
insert into leasebook.jobs (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at)
select job_id, event_id, 'default', 5, 'work', '{}', now(), 3, 600, 600, 'hold', 1, 'queued',
       now(), now()
  from logged
"""


def until(true: Callable[[], bool], what: str) -> None:
    """Ask again and again, at most ``WAIT_SECONDS``."""
    give_up = monotonic() + WAIT_SECONDS
    while not true():
        assert monotonic() < give_up, what


@define
class Watch:
    """What a second session sees of waits for the claim table while a block runs."""

    dsn: str
    blocked_seconds: float = 0.0
    attempts: set[tuple[int, Any]] = field(factory=set[tuple[int, Any]])
    looks: int = 0

    def look(self, connection: psycopg.Connection[Any]) -> None:
        self.looks += 1
        for pid, mode, since, seconds in connection.execute(WAITING).fetchall():
            if mode == "AccessExclusiveLock":
                self.attempts.add((pid, since))
            else:
                self.blocked_seconds = max(self.blocked_seconds, seconds)

    def run(self, stop: Event) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            while not stop.is_set():
                self.look(connection)


def enqueue(dsn: str, stop: Event) -> int:
    """Producers go on: one job in each transaction, in the columns of the first release."""
    made = 0
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            connection.execute(BIRTH)
            connection.commit()
            made += 1
    return made


def acknowledge(dsn: str, stop: Event) -> int:
    """Workers go on: rows change and leave, as the first release's statements do it."""
    done = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not stop.is_set():
            done += connection.execute(
                "with own as (select id from leasebook.jobs where state = 'queued'"
                " order by due_at limit 5 for update skip locked)"
                " delete from leasebook.jobs as j using own where j.id = own.id"
            ).rowcount
    return done


@contextmanager
def traffic(dsn: str) -> Generator[Watch]:
    """Writers and a watch beside the block; all of them must have got somewhere."""
    stop, watch = Event(), Watch(dsn)
    with ThreadPoolExecutor() as threads:
        futures = [threads.submit(enqueue, dsn, stop) for _ in range(WRITERS)]
        futures += [threads.submit(acknowledge, dsn, stop) for _ in range(WRITERS)]
        watching = threads.submit(watch.run, stop)
        try:
            until(lambda: watch.looks > 0, "the watch did not begin")
            yield watch
        finally:
            stop.set()
        watching.result()
        assert all(future.result() > 0 for future in futures)
