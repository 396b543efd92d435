"""The notifier rings after a commit, once for many, and never for what did not commit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import pytest
from attrs import define, field

from leasebook.infra.app import notifier as notifier_module
from leasebook.infra.app.notifier import AGAIN, LOOKS_SECONDS, NEVER, QUIET_SECONDS, Notifier
from leasebook.infra.app.notifiers import close_all
from tests.support.servers import wait_until

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


def test_closing_rings_for_what_commits_while_it_is_asked() -> None:
    """Neither the next transaction nor the one asked about too early is forgotten."""
    early, next_one = Line(is_over=True), Line()
    with notifying() as (notifier, database):
        asked, answered = threading.Event(), threading.Event()

        def meanwhile() -> None:
            database.meanwhile = None
            asked.set()
            assert answered.wait(30.0)

        database.meanwhile = meanwhile
        notifier.watch(1, early)
        assert asked.wait(30.0)
        database.committed |= {1, 2}
        notifier.watch(2, next_one)
        closing = threading.Thread(target=notifier.close, args=(30.0,))
        closing.start()
        wait_until(lambda: vars(notifier)["_closing"], "closing")
        answered.set()
        closing.join()
        assert database.rings == 1
        assert [set(xids) for xids in database.asked] == [{1}, {1, 2}]


def test_who_closes_again_does_not_wait_again() -> None:
    with notifying() as (notifier, database):
        answered = threading.Event()

        def meanwhile() -> None:
            assert answered.wait(30.0)

        database.meanwhile = meanwhile
        notifier.watch(1, Line(is_over=True))
        wait_until(lambda: database.asked, "a question without an answer")
        notifier.close(0.0)
        notifier.close(30.0)
        close_all()
        answered.set()


def test_what_comes_while_it_connects_is_asked_about_once() -> None:
    connecting, connected = threading.Event(), threading.Event()
    database = FakeDatabase(committed={1, 2})

    def connect() -> FakeDatabase:
        connecting.set()
        assert connected.wait(30.0)
        return database

    notifier = Notifier(connect, database)
    try:
        notifier.watch(1, Line(is_over=True))
        assert connecting.wait(30.0)
        notifier.watch(2, Line(is_over=True))
        connected.set()
        wait_until(lambda: notifier.pending == 0, "both told of")
        assert vars(notifier)["_look_at"] == vars(notifier)["_ask_at"] == NEVER, "for nothing"
    finally:
        notifier.close()
    assert [set(xids) for xids in database.asked] == [{1, 2}]


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
