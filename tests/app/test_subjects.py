"""Is work for a subject still under way?  Asked in every state that a job can be in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from leasebook import Book
from leasebook.domain.errors import InvalidValue
from leasebook.infra.postgres.caller_errors import NoTransaction

from .ground import KINDS, App, PageChanged, settled, within

SUBJECT = "page 7"


def put(app: App, act: Callable[[psycopg.Connection[Any]], object]) -> None:
    with psycopg.connect(app.dsn) as connection:
        act(connection)


def become(app: App, changes: str) -> None:
    """Put the one job into another state, past the log: what is asked is the claim table."""
    put(app, lambda connection: connection.execute(f"update leasebook.jobs set {changes}".encode()))


def answers(app: App) -> tuple[bool, bool]:
    return app.book.alive(None, SUBJECT), app.book.held(None, SUBJECT)


LEASED = "state = 'leased', lease = 1, worker = 'w', started_at = now()"
STATES = {
    "queued": ("state = 'queued'", (True, False)),
    "grouped": ("state = 'grouped'", (True, False)),
    "leased": (LEASED, (True, False)),
    "expired": (LEASED + ", due_at = now() - interval '1 hour'", (True, False)),
    "retry-wait": ("state = 'retry-wait', due_at = now() + interval '1 hour'", (True, False)),
    "held": ("state = 'failed', held = true, outcome = 'exhausted'", (False, True)),
}


@pytest.mark.acceptance("A10")
@pytest.mark.unchecked("the claim table is changed past the log")
@pytest.mark.parametrize("state", STATES)
def test_every_state(app: App, state: str) -> None:
    changes, expected = STATES[state]
    put(app, lambda caller: app.add.enqueue(caller, 1, subject=SUBJECT))
    become(app, changes)
    assert answers(app) == expected
    assert not app.book.alive(None, "another")


@pytest.mark.acceptance("A10")
@pytest.mark.unchecked("the claim table is changed past the log")
def test_finished_never_known_and_both_at_once(app: App) -> None:
    assert answers(app) == (False, False)
    put(app, lambda caller: app.add.enqueue(caller, 1, subject=SUBJECT))
    become(app, "state = 'failed', held = true, outcome = 'lost'")
    put(app, lambda caller: app.add.enqueue(caller, 1, subject=SUBJECT))
    assert answers(app) == (True, True)
    put(app, lambda caller: caller.execute("delete from leasebook.jobs"))
    assert answers(app) == (False, False)


@pytest.mark.acceptance("A10")
def test_items_in_the_inbox(app: App) -> None:
    page = PageChanged("a")
    put(app, lambda caller: app.sync_page.enqueue(caller, page, group_key="a", subject=SUBJECT))
    assert app.rows() == (0, 0, 1)
    assert answers(app) == (True, False)


@pytest.mark.acceptance("A10")
@pytest.mark.parametrize("kind", KINDS)
async def test_every_caller_sees_its_own_enqueues(app: App, kind: str) -> None:
    async def ask(caller: Any) -> Any:
        await settled(app.add.enqueue(caller, 1, subject=SUBJECT))
        return (
            await settled(app.book.alive(caller, SUBJECT)),
            await settled(app.book.held(caller, SUBJECT)),
            await settled(app.book.alive_many(caller, [SUBJECT, "another", SUBJECT])),
        )

    def ask_at_once(caller: Any) -> Any:
        app.add.enqueue(caller, 1, subject=SUBJECT)
        book = app.book
        return (
            book.alive(caller, SUBJECT),
            book.held(caller, SUBJECT),
            book.alive_many(caller, [SUBJECT, "another", SUBJECT]),
        )

    act = ask if "Async" in kind else ask_at_once
    expected = (True, False, {SUBJECT: True, "another": False})
    assert await within(kind, app.dsn, act) == expected
    assert app.book.alive(None, SUBJECT)


@pytest.mark.acceptance("A10")
def test_many_in_one_query(app: App) -> None:
    put(app, lambda caller: app.add.enqueue(caller, 1, subject="3"))
    asked = [str(number) for number in range(10_500)]
    found = app.book.alive_many(None, asked)
    assert list(found) == asked
    assert [subject for subject, alive in found.items() if alive] == ["3"]
    assert app.book.alive_many(None, []) == {}


@pytest.mark.acceptance("A10")
def test_what_is_refused(app: App) -> None:
    book: Book = app.book
    for bad in ("", "x" * 513, 7):
        with pytest.raises(InvalidValue, match="subject"):
            book.alive(None, bad)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(InvalidValue, match="use alive"):
        book.alive_many(None, "subject")
    with (
        psycopg.connect(app.dsn, autocommit=True) as connection,
        pytest.raises(NoTransaction),
    ):
        book.alive(connection, SUBJECT)
