"""What waking workers costs producers: nothing in their transactions, one ring for many commits.

A commit that notifies takes a lock of the whole server until it is over, so that one slow commit
makes all of them wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Barrier, Event
from typing import Any

import psycopg
import pytest
from attrs import define, field

from leasebook.infra.app.notifier import Notifier
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import channel
from tests.support.servers import wait_until

from .ground import App, PageChanged, pending
from .test_notifier import FakeDatabase, Line

WRITERS = 64
COMMITS = 10
#: Those with a connection of their own; a server has 100 of them.
SESSIONS = 32
PAGE = PageChanged("a.md")


@define(eq=False)
class SlowBell(FakeDatabase):
    """Whose first ring lasts until a test lets it end."""

    ringing: Event = field(factory=Event)
    heard: Event = field(factory=Event)

    def ring_for(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        ended = super().ring_for(xids)
        if ended[0]:
            self.ringing.set()
            assert self.heard.wait(30.0)
        return ended


@pytest.fixture
def noisy(database_dsn: str) -> Iterator[App]:
    """An application whose enqueues ring."""
    application = App(database_dsn, notify=True)
    with application.book:
        yield application


@pytest.mark.case("C17")
def test_all_that_commits_during_a_ring_is_told_by_the_next() -> None:
    database = SlowBell()
    notifier = Notifier(lambda: database, database)
    lines = [Line(is_over=True) for _ in range(WRITERS * COMMITS + 1)]
    try:
        database.committed.add(0)
        notifier.watch(0, lines[0])
        assert database.ringing.wait(30.0)
        several = range(1, len(lines))
        database.committed.update(several)

        def watch(xid: int) -> None:
            notifier.watch(xid, lines[xid])

        with ThreadPoolExecutor(WRITERS) as writers:
            list(writers.map(watch, several))
        database.heard.set()
        wait_until(lambda: notifier.pending == 0, "all told of")
        wait_until(lambda: database.rings == 2, "a ring for the first, and one for the others")
    finally:
        notifier.close()
    assert database.rings == 2


@pytest.mark.case("C17")
@pytest.mark.parametrize("name", ["publish", "sync_page"])
def test_no_writer_of_many_notifies_itself(noisy: App, name: str) -> None:
    """PostgreSQL tells which session notified: it is one beside theirs, or nobody when told so."""
    keys: dict[str, Any] = {"group_key": "hot"} if name == "sync_page" else {}
    silent = App(noisy.dsn, notify=False)
    with ExitStack() as stack, psycopg.connect(noisy.dsn, autocommit=True) as ear:
        heard: set[int] = set()
        ear.add_notify_handler(lambda notice: heard.add(notice.pid))
        ear.execute(f'listen "{channel(Schema(noisy.schema))}"'.encode())
        writers = [stack.enter_context(psycopg.connect(noisy.dsn)) for _ in range(SESSIONS)]
        together = Barrier(SESSIONS)

        def write(app: App, connection: psycopg.Connection[Any]) -> int:
            together.wait(30.0)
            getattr(app, name).enqueue(connection, PAGE, **keys)
            connection.commit()
            return connection.info.backend_pid

        def write_all(app: App) -> set[int]:
            with ThreadPoolExecutor(SESSIONS) as pool:
                return set(pool.map(partial(write, app), writers))

        pids = write_all(silent)
        assert ear.execute("select 1").fetchone() == (1,)
        assert not heard
        assert write_all(noisy) == pids
        wait_until(lambda: pending(noisy) == 0, "all told of")
        wait_until(lambda: bool(ear.execute("select 1").fetchone() and heard), "a notification")
    assert len(heard) == 1
    assert not heard & pids
