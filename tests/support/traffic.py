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

from tests.app.ground import App, PageChanged

WRITERS = 2
WAIT_SECONDS = 60.0

#: Who waits for a lock on the claim table, since when, and for which lock.
WAITING = """
select l.pid, l.mode, l.waitstart, extract(epoch from clock_timestamp() - l.waitstart)::float8
  from pg_locks as l
 where not l.granted and l.relation = 'leasebook.jobs'::regclass and l.waitstart is not null
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
    """Producers go on: one job in each transaction."""
    made = 0
    app = App(dsn)
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            app.publish.enqueue(connection, PageChanged("a.md"))
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
