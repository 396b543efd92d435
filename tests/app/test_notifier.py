"""The notifier rings after a commit, once for many, and never for what did not commit."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from attrs import define, field
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session

from leasebook.infra.app import notifier as notifier_module
from leasebook.infra.app.notifier import AGAIN, LOOKS_SECONDS, QUIET_SECONDS, Notifier
from leasebook.infra.ports import Wakeup
from leasebook.infra.postgres import callers
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import channel
from tests.support.servers import wait_until

from .ground import App, PageChanged, url_over

#: Long enough for every wait of a watched transaction to have passed several times.
SETTLED_ASKS = 8


@define(eq=False)
class Line:
    """A driver's connection, and what it shows: is a transaction open on it?"""

    is_over: bool = False


@define(eq=False)
class FakeDatabase:
    """Transactions that end when a test says so; ``asked`` is what the server was asked."""

    committed: set[int] = field(factory=set[int])
    aborted: set[int] = field(factory=set[int])
    asked: list[tuple[int, ...]] = field(factory=list[tuple[int, ...]])
    looks: int = 0
    rings: int = 0
    broken: bool = False
    closed: bool = False
    meanwhile: Callable[[], None] | None = None

    def ring_for(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        if self.broken:
            raise ConnectionError("no database")
        self.asked.append(tuple(xids))
        committed = [x for x in xids if x in self.committed]
        self.rings += bool(committed)
        if self.meanwhile is not None:
            self.meanwhile()
        return committed, [x for x in xids if x in self.aborted]

    def close(self) -> None:
        self.closed = True

    def line_of(self, caller: object) -> Line:
        if not isinstance(caller, Line):
            raise TypeError("nothing to look at")
        return caller

    def is_over(self, line: Line) -> bool:
        self.looks += 1
        return line.is_over


@contextmanager
def notifying() -> Generator[tuple[Notifier, FakeDatabase]]:
    """A notifier on a database of a test's own."""
    database = FakeDatabase()
    notifier = Notifier(lambda: database, database)
    try:
        yield notifier, database
    finally:
        notifier.close()


def test_it_rings_once_when_transactions_have_committed() -> None:
    lines = [Line(), Line()]
    with notifying() as (notifier, database):
        for xid, line in enumerate(lines):
            notifier.watch(xid, line)
        wait_until(lambda: len(database.asked) >= SETTLED_ASKS, "questions about open ones")
        assert database.rings == 0
        database.committed |= {0, 1}
        wait_until(lambda: database.rings, "a ring")
        wait_until(lambda: notifier.pending == 0, "both forgotten")
        assert database.rings == 1


def test_the_server_is_asked_when_a_connection_shows_the_end_and_not_before() -> None:
    line = Line()
    with notifying() as (notifier, database):
        database.committed.add(1)
        notifier.watch(1, line)
        wait_until(lambda: database.looks >= AGAIN, "looks at an open one")
        line.is_over = True
        wait_until(lambda: notifier.pending == 0, "forgotten")
        assert database.rings == 1
        assert len(database.asked) == 1


def test_the_next_transaction_of_a_connection_shows_the_end_of_the_last() -> None:
    """A busy connection never looks idle when somebody looks."""
    line = Line()
    with notifying() as (notifier, database):
        database.committed.add(1)
        notifier.watch(1, line)
        notifier.watch(2, line)
        wait_until(lambda: database.rings == 1, "a ring for the first")
        assert notifier.pending == 1
        assert line.is_over is False


def test_a_connection_that_is_gone_shows_the_end_too() -> None:
    with notifying() as (notifier, database):
        database.committed.add(1)
        notifier.watch(1, Line())
        wait_until(lambda: database.rings == 1, "a ring")
        assert notifier.pending == 0


def test_one_that_looks_over_and_is_not_is_asked_about_until_it_is() -> None:
    line = Line(is_over=True)
    with notifying() as (notifier, database):
        notifier.watch(1, line)
        wait_until(lambda: len(database.asked) >= 2, "questions")
        database.committed.add(1)
        wait_until(lambda: database.rings == 1, "a ring")


def test_one_that_cannot_be_looked_at_is_asked_about() -> None:
    with notifying() as (notifier, database):
        notifier.watch(1, object())
        wait_until(lambda: len(database.asked) >= 2, "questions")
        database.committed.add(1)
        wait_until(lambda: database.rings == 1, "a ring")
        assert notifier.pending == 0


def test_a_busy_transaction_does_not_keep_others_from_being_asked_about() -> None:
    """The first has committed, and its connection has gone on with other work."""
    first, busy = Line(), Line()
    with notifying() as (notifier, database):
        database.committed.add(1)
        notifier.watch(1, first)

        def told() -> bool:
            notifier.watch(2, busy)
            return database.rings == 1

        wait_until(told, "a ring for the first, while the other enqueues on")


def test_what_ends_while_it_is_asked_about_is_asked_about_again_at_once() -> None:
    line = Line()
    with notifying() as (notifier, database):

        def meanwhile() -> None:
            database.committed.add(1)
            notifier.watch(2, line)
            database.meanwhile = None

        database.meanwhile = meanwhile
        notifier.watch(1, line)
        wait_until(lambda: database.rings == 1, "a ring")
        assert [set(xids) for xids in database.asked[:2]] == [{1}, {1, 2}]


def test_what_is_pending_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier_module, "PENDING_MAX", 3)
    lines = [Line() for _ in range(10)]
    with notifying() as (notifier, _):
        for xid, line in enumerate(lines):
            notifier.watch(xid, line)
        assert notifier.pending == 3
        for xid in range(10, 20):
            notifier.watch(xid, object())
        assert notifier.pending == 6


def test_what_was_rolled_back_is_forgotten_without_a_ring() -> None:
    line = Line(is_over=True)
    with notifying() as (notifier, database):
        database.aborted.add(1)
        notifier.watch(1, line)
        wait_until(lambda: notifier.pending == 0, "forgotten")
        assert database.rings == 0


def test_questions_become_rarer_and_a_new_transaction_hastens_them() -> None:
    old, new = Line(), Line(is_over=True)
    with notifying() as (notifier, database):
        notifier.watch(1, old)
        wait_until(lambda: len(database.asked) >= SETTLED_ASKS, "several questions")
        database.committed.add(2)
        notifier.watch(2, new)
        wait_until(lambda: database.rings == 1, "a ring for the second")
        assert notifier.pending == 1


def test_a_burst_is_told_of_by_few_rings() -> None:
    """However many transactions commit, no more than one ring in each quiet time."""
    line = Line()
    with notifying() as (notifier, database):
        began = time.monotonic()
        for xid in range(2_000):
            database.committed.add(xid)
            notifier.watch(xid, line)
        wait_until(lambda: notifier.pending == 0, "all forgotten")
        assert 1 <= database.rings <= 1 + (time.monotonic() - began) / QUIET_SECONDS


def test_who_enqueues_time_after_time_is_not_looked_at_each_time() -> None:
    line = Line()
    with notifying() as (notifier, database):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            notifier.watch(1, line)
        most = (time.monotonic() - until + 0.1) / LOOKS_SECONDS[AGAIN] + AGAIN + 1
        assert database.looks <= most


def test_closing_rings_for_what_has_committed_by_then() -> None:
    line = Line()
    with notifying() as (notifier, database):
        notifier.watch(1, line)
        wait_until(lambda: len(database.asked) >= SETTLED_ASKS, "a long wait")
        database.committed.add(1)
        notifier.close()
        assert database.rings == 1
        assert database.closed
        notifier.watch(2, line)
        assert notifier.pending == 0


def test_without_a_database_it_gives_up_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    line = Line(is_over=True)
    with notifying() as (notifier, database):
        database.broken = True
        notifier.watch(1, line)
        wait_until(lambda: notifier.pending == 0, "given up")
        # For a while nobody tries again, and nobody waits.
        notifier.watch(2, line)
        assert notifier.pending == 0
    assert capfd.readouterr() == ("", "")


def test_a_child_begins_anew_with_a_thread_of_its_own() -> None:
    line = Line()
    with notifying() as (notifier, database):
        notifier.watch(1, line)
        wait_until(lambda: database.asked, "the parent's thread at work")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                database.asked.clear()
                assert notifier.pending == 0
                database.committed.add(7)
                notifier.watch(7, Line(is_over=True))
                wait_until(lambda: database.rings == 1, "a ring in the child")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert notifier.pending == 1
        assert database.rings == 0


@pytest.fixture
def noisy(database_dsn: str) -> Iterator[App]:
    """An application whose enqueues ring."""
    application = App(database_dsn, notify=True)
    with application.book:
        yield application


@contextmanager
def listening(app: App) -> Generator[Wakeup]:
    """A bell that surely listens: its first ring, of the beginning, is over."""
    bell = app.book.wakeup()
    try:
        assert bell.wait(30.0)
        yield bell
    finally:
        bell.close()


def pending(app: App) -> int:
    """How many transactions the book's notifier watches."""
    notifier: Any = vars(app.book)["_notifier"]
    return 0 if notifier is None else notifier.pending


PAGE = PageChanged("a.md")


def test_workers_are_woken_after_commit_and_not_before(noisy: App) -> None:
    engine = noisy.book.engine()
    with listening(noisy) as bell:
        with Session(engine) as session, session.begin():
            with session.begin_nested():
                noisy.publish.enqueue(session, PAGE)
            # The savepoint is released; the transaction is not committed.
            assert not bell.wait(0.1)
            assert pending(noisy) == 1
        assert bell.wait(30.0)
        wait_until(lambda: pending(noisy) == 0, "forgotten")
    engine.dispose()


def test_a_rollback_rings_nobody(noisy: App) -> None:
    with listening(noisy) as bell, psycopg.connect(noisy.dsn) as connection:
        noisy.publish.enqueue(connection, PAGE)
        noisy.sync_page.enqueue(connection, PAGE, group_key="a")
        connection.rollback()
        wait_until(lambda: pending(noisy) == 0, "forgotten")
        assert not bell.wait(0.0)


async def test_asynchronous_callers_ring_too(noisy: App) -> None:
    with listening(noisy) as bell:
        async with await psycopg.AsyncConnection.connect(noisy.dsn) as connection:
            await noisy.publish.enqueue(connection, PAGE)
        assert bell.wait(30.0)


async def test_the_session_of_a_scope_is_that_of_the_task_which_enqueues(noisy: App) -> None:
    engine = create_async_engine(url_over("psycopg", noisy.dsn))
    scoped = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
    with listening(noisy) as bell:
        await asyncio.wait_for(asyncio.ensure_future(noisy.publish.enqueue(scoped, PAGE)), 30)
        assert len(scoped.registry.registry) == 1
        await scoped.commit()
        assert bell.wait(30.0)
    await scoped.remove()
    await engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_the_end_is_seen_on_a_connection_of_any_driver(noisy: App, driver: str) -> None:
    engine = create_engine(url_over(driver, noisy.dsn))
    with engine.connect() as connection:
        noisy.publish.enqueue(connection, PAGE)
        line = callers.line_of(connection)
        assert not callers.is_over(line)
        connection.commit()
        assert callers.is_over(line)
    with Session(engine) as session:
        noisy.publish.enqueue(session, PAGE)
        line = callers.line_of(session)
        session.rollback()
        assert callers.is_over(line)
    engine.dispose()
    assert callers.is_over(line), "closed"


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_the_end_is_seen_on_an_asynchronous_connection(noisy: App, driver: str) -> None:
    engine = create_async_engine(url_over(driver, noisy.dsn))
    async with engine.connect() as connection:
        await noisy.publish.enqueue(connection, PAGE)
        line = callers.line_of(connection)
        assert not callers.is_over(line)
        await connection.commit()
        assert callers.is_over(line)
    async with AsyncSession(engine) as session:
        await noisy.publish.enqueue(session, PAGE)
        line = callers.line_of(session)
        assert not callers.is_over(line)
        await session.rollback()
        assert callers.is_over(line)
    await engine.dispose()
    assert callers.is_over(line), "closed"


@pytest.mark.case("C16")
def test_no_callers_transaction_notifies(database_dsn: str) -> None:
    """A commit that notifies takes a lock of the whole server; an enqueue's commit must not."""
    app = App(database_dsn, notify=False)
    name = channel(Schema(app.schema))
    with psycopg.connect(database_dsn, autocommit=True) as ear:
        ear.execute(f'listen "{name}"'.encode())
        with psycopg.connect(database_dsn) as connection:
            app.publish.enqueue(connection, PAGE)
            app.add.enqueue_many(connection, [(number,) for number in range(100)])
            app.sync_page.enqueue(connection, PAGE, group_key="a")
        ear.execute("select pg_notify(%s, 'mark')", (name,))
        heard = [notice.payload for notice in ear.notifies(timeout=30.0, stop_after=1)]
    assert heard == ["mark"]
    assert vars(app.book)["_notifier"] is None
