"""Callers over psycopg2 and asyncpg: what differs from psycopg, and what must not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from leasebook import NoTransaction
from leasebook.domain import InvalidValue
from leasebook.infra.postgres import accept_parts
from leasebook.infra.postgres.caller_errors import CallerRefused
from leasebook.infra.postgres.parameters import for_driver

from .ground import KINDS, NOTHING, App, PageChanged, settled, url_over, within

OVER = [kind for kind in KINDS if " over " in kind]
ODD = "50 % of $1 is %(kind)s; dépôt 日本 \\ ' \" :x ?"


@pytest.mark.acceptance("P02")
@pytest.mark.parametrize("kind", OVER)
async def test_times_delays_and_odd_texts_arrive_as_they_left(app: App, kind: str) -> None:
    """With and without times in one call, with every character that some driver reads as its."""
    at = datetime(2100, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    anything: Any = app.anything

    async def act(caller: Any) -> Any:
        plain = await settled(anything.enqueue(caller, ODD, subject=ODD))
        later = await settled(anything.enqueue(caller, 1, run_at=at))
        soon = await settled(anything.enqueue(caller, 1, delay=3600.5))
        return plain, later, soon

    if kind.startswith("Async"):
        plain, later, soon = await within(kind, app.dsn, act)
    else:
        got: list[Any] = []

        def collect(caller: Any) -> None:
            got.append(anything.enqueue(caller, ODD, subject=ODD))
            got.append(anything.enqueue(caller, 1, run_at=at))
            got.append(anything.enqueue(caller, 1, delay=3600.5))

        await within(kind, app.dsn, collect)
        plain, later, soon = got
    log = app.book.log()
    born: Any = log.stream(plain.id)[0].event
    assert born.spec.subject == ODD
    assert json.loads(born.spec.args) == {"value": ODD}
    postponed: Any = log.stream(later.id)[0].event
    assert postponed.due_at == at
    delayed: Any = log.stream(soon.id)[0].event
    assert delayed.due_at - delayed.spec.enqueued_at == timedelta(seconds=3600.5)


@pytest.mark.parametrize("kind", OVER)
async def test_a_refusal_in_a_later_part_takes_all_back(
    app: App, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Savepoints are said through these drivers too."""
    monkeypatch.setattr(accept_parts, "ROWS_MAX", 2)
    add: Any = app.add

    async def act(caller: Any) -> Any:
        await settled(add.enqueue_many(caller, [(number,) for number in range(5)]))

    def act_now(caller: Any) -> Any:
        add.enqueue_many(caller, [(number,) for number in range(5)])

    await within(kind, app.dsn, act if kind.startswith("Async") else act_now)
    assert app.rows() == (5, 5, 0)

    past = datetime(2000, 1, 1, tzinfo=UTC)

    async def refused(caller: Any) -> Any:
        with pytest.raises(InvalidValue):
            await settled(add.enqueue(caller, 1, expires_at=past))

    def refused_now(caller: Any) -> Any:
        with pytest.raises(InvalidValue):
            add.enqueue(caller, 1, expires_at=past)

    await within(kind, app.dsn, refused if kind.startswith("Async") else refused_now)
    assert app.rows() == (5, 5, 0)


@pytest.mark.acceptance("Q02")
async def test_without_a_transaction_nothing_is_enqueued(app: App) -> None:
    engine = create_engine(url_over("psycopg2", app.dsn), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(NoTransaction, match="AUTOCOMMIT"):
        app.publish.enqueue(connection, PageChanged("a.md"))
    engine.dispose()
    waiting = create_async_engine(url_over("asyncpg", app.dsn), isolation_level="AUTOCOMMIT")
    async with waiting.connect() as itself:
        with pytest.raises(NoTransaction, match="AUTOCOMMIT"):
            await app.publish.enqueue(itself, PageChanged("a.md"))
    await waiting.dispose()
    assert app.rows() == NOTHING


@pytest.mark.parametrize("kind", ["Connection over psycopg2", "AsyncConnection over asyncpg"])
async def test_an_empty_search_path_and_an_odd_schema(database_dsn: str, kind: str) -> None:
    app = App(database_dsn, 'Jobs-x ":s" $1')
    app.book.migrate()
    empty = text("set local search_path = ''")

    async def act(caller: Any) -> None:
        await caller.execute(empty)
        await settled(app.add.enqueue(caller, 1))
        await settled(app.sync_page.enqueue(caller, PageChanged("a.md"), group_key="a.md"))

    def act_now(caller: Any) -> None:
        caller.execute(empty)
        app.add.enqueue(caller, 1)
        app.sync_page.enqueue(caller, PageChanged("a.md"), group_key="a.md")

    await within(kind, database_dsn, act if kind.startswith("Async") else act_now)
    assert app.rows() == (1, 1, 1)


def test_a_driver_that_nobody_has_tried_is_refused_by_name(app: App) -> None:
    engine = create_engine(url_over("psycopg2", app.dsn))
    engine.dialect.driver = "pg8000"
    with engine.connect() as connection, pytest.raises(CallerRefused, match="pg8000"):
        app.publish.enqueue(connection, PageChanged("a.md"))
    engine.dispose()


def test_numbered_parameters() -> None:
    statement = "select %(b)s::text[], %(a)s::timestamptz[], %(b)s, 7 %% 2"
    assert for_driver("asyncpg", statement, {"a": 1, "b": 2}) == (
        "select $1::text[], $2::text[]::timestamptz[], $1, 7 % 2",
        (2, 1),
    )
    assert for_driver("psycopg2", statement, {"a": 1, "b": 2}) == (statement, {"a": 1, "b": 2})
