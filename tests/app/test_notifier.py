"""The notifier rings after a commit, once for many, and never for what did not commit."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from attrs import define, field
from sqlalchemy.orm import Session

from leasebook.infra.app.notifier import AGAIN, FIRST_WAITS_SECONDS, QUIET_SECONDS, Notifier
from leasebook.infra.ports import Wakeup
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import channel
from tests.support.servers import wait_until

from .ground import App, PageChanged

#: Long enough for every wait of a watched transaction to have passed several times.
SETTLED_ASKS = 8


@define(eq=False)
class FakeCommits:
    """A database whose transactions end when a test says so."""

    committed: set[int] = field(factory=set[int])
    aborted: set[int] = field(factory=set[int])
    asked: list[tuple[int, ...]] = field(factory=list[tuple[int, ...]])
    rings: int = 0
    broken: bool = False
    closed: bool = False

    def ring_for(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        if self.broken:
            raise ConnectionError("no database")
        self.asked.append(tuple(xids))
        committed = [x for x in xids if x in self.committed]
        self.rings += bool(committed)
        return committed, [x for x in xids if x in self.aborted]

    def close(self) -> None:
        self.closed = True


@contextmanager
def notifying() -> Generator[tuple[Notifier, FakeCommits]]:
    """A notifier on a database of a test's own."""
    commits = FakeCommits()
    notifier = Notifier(lambda: commits)
    try:
        yield notifier, commits
    finally:
        notifier.close()


def test_it_rings_once_when_a_transaction_has_committed() -> None:
    with notifying() as (notifier, commits):
        notifier.watch([1, 2])
        wait_until(lambda: len(commits.asked) >= SETTLED_ASKS, "questions about an open one")
        assert commits.rings == 0
        commits.committed |= {1, 2}
        wait_until(lambda: commits.rings, "a ring")
        wait_until(lambda: notifier.pending == 0, "both forgotten")
        assert commits.rings == 1


def test_what_was_rolled_back_is_forgotten_without_a_ring() -> None:
    with notifying() as (notifier, commits):
        commits.aborted.add(1)
        notifier.watch([1])
        wait_until(lambda: notifier.pending == 0, "forgotten")
        assert commits.rings == 0


def test_questions_become_rarer_and_a_new_transaction_hastens_them() -> None:
    with notifying() as (notifier, commits):
        notifier.watch([1])
        wait_until(lambda: len(commits.asked) >= SETTLED_ASKS, "several questions")
        commits.committed.add(2)
        notifier.watch([2])
        wait_until(lambda: commits.rings == 1, "a ring for the second")
        assert notifier.pending == 1


def test_a_burst_is_told_of_by_few_rings() -> None:
    """However many transactions commit, no more than one ring in each quiet time."""
    with notifying() as (notifier, commits):
        began = time.monotonic()
        for xid in range(2_000):
            commits.committed.add(xid)
            notifier.watch([xid])
        wait_until(lambda: notifier.pending == 0, "all forgotten")
        assert 1 <= commits.rings <= 1 + (time.monotonic() - began) / QUIET_SECONDS


def test_who_enqueues_time_after_time_is_not_asked_about_each_time() -> None:
    with notifying() as (notifier, commits):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            notifier.watch([1])
        most = (time.monotonic() - until + 0.1) / FIRST_WAITS_SECONDS[AGAIN] + AGAIN + 1
        assert len(commits.asked) <= most


def test_closing_rings_for_what_has_committed_by_then() -> None:
    with notifying() as (notifier, commits):
        notifier.watch([1])
        wait_until(lambda: len(commits.asked) >= SETTLED_ASKS, "a long wait")
        commits.committed.add(1)
        notifier.close()
        assert commits.rings == 1
        assert commits.closed
        notifier.watch([2])
        assert notifier.pending == 0


def test_without_a_database_it_gives_up_quietly(capfd: pytest.CaptureFixture[str]) -> None:
    with notifying() as (notifier, commits):
        commits.broken = True
        notifier.watch([1])
        wait_until(lambda: notifier.pending == 0, "given up")
        # For a while nobody tries again, and nobody waits.
        notifier.watch([2])
        assert notifier.pending == 0
    assert capfd.readouterr() == ("", "")


def test_a_child_begins_anew_with_a_thread_of_its_own() -> None:
    with notifying() as (notifier, commits):
        notifier.watch([1])
        wait_until(lambda: commits.asked, "the parent's thread at work")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                commits.asked.clear()
                assert notifier.pending == 0
                commits.committed.add(7)
                notifier.watch([7])
                wait_until(lambda: commits.rings == 1, "a ring in the child")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert notifier.pending == 1
        assert commits.rings == 0


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
