"""Keys as an application uses them: through every caller, with every option, at every isolation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.errors import SerializationFailure
from sqlalchemy import event
from sqlalchemy.orm import Session

from leasebook import IdempotencyConflict, InvalidValue, Receipt, UniqueKeyTaken
from leasebook.domain import change
from leasebook.domain.commands import Complete, TakeLease

from .ground import KINDS, App, PageChanged, settled, within

PAGE = PageChanged("a.md")
REPEATABLE = psycopg.IsolationLevel.REPEATABLE_READ


def enqueue(app: App, dsn: str, **options: Any) -> Receipt:
    with psycopg.connect(dsn) as connection:
        return app.publish.enqueue(connection, PAGE, **options)


def finish(app: App, receipt: Receipt) -> None:
    """Run the job of a receipt to its end."""
    assert receipt.id is not None
    with app.book.store().transaction() as tx:
        leased = change(tx.load([receipt.id])[receipt.id], TakeLease(tx.at, "w"))
        assert leased.after.lease is not None
        assert not tx.append([leased])
        assert not tx.append([change(leased.after, Complete(tx.at, leased.after.lease.token))])


def last_event_id(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select last_value from leasebook.job_events_event_id_seq"
        ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.acceptance("P09", "Q25")
@pytest.mark.parametrize("kind", KINDS)
async def test_no_key_breaks_the_callers_transaction(app: App, kind: str) -> None:
    """Whatever is refused, kept, moved or known, the same transaction writes on and commits."""
    publish: Any = app.publish
    first = enqueue(app, app.dsn, unique_key="k", delay=3600)
    known = enqueue(app, app.dsn, idempotency_key="r")

    async def act(caller: Any) -> list[Receipt]:
        with pytest.raises(UniqueKeyTaken) as taken:
            await settled(publish.enqueue(caller, PAGE, unique_key="k"))
        assert taken.value.job_id == first.id
        with pytest.raises(IdempotencyConflict) as conflict:
            await settled(publish.enqueue(caller, PageChanged("b"), idempotency_key="r"))
        assert conflict.value.job_id == known.id
        with pytest.raises(UniqueKeyTaken):
            await settled(publish.enqueue_many(caller, [PAGE, PAGE], unique_key=twice))
        return [
            await settled(publish.enqueue(caller, PAGE, unique_key="k", on_conflict="keep")),
            await settled(publish.enqueue(caller, PAGE, unique_key="k", on_conflict="replace")),
            await settled(publish.enqueue(caller, PAGE, idempotency_key="r")),
            await settled(publish.enqueue(caller, PAGE, unique_key="new", idempotency_key="s")),
        ]

    if "Async" in kind:
        receipts = await within(kind, app.dsn, act)
    else:
        receipts = await within(kind, app.dsn, lambda caller: run_now(act(caller)))
    assert [each.id for each in receipts[:3]] == [first.id, first.id, known.id]
    assert [each.created for each in receipts] == [False, False, False, True]
    assert app.rows() == (4, 3, 0)


def twice(page: PageChanged) -> str:
    return "twice"


def run_now(coroutine: Any) -> Any:
    """A coroutine that waits for nothing, run to its end."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


@pytest.mark.acceptance("P09")
def test_a_key_costs_no_round_trip_and_no_savepoint(app: App) -> None:
    engine = app.book.engine()
    seen: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def count(*given: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        seen.append(given[2])

    with Session(engine) as session, session.begin():
        app.publish.enqueue(session, PAGE, unique_key="k")
        assert len(seen) == 1
        app.publish.enqueue(session, PAGE, unique_key="k", on_conflict="keep")
        assert len(seen) == 2
        app.publish.enqueue(session, PAGE, idempotency_key="r")
        assert len(seen) == 4
        app.publish.enqueue(session, PAGE, idempotency_key="r")
        assert len(seen) == 6
    engine.dispose()


def test_keys_of_many(app: App) -> None:
    def path_of(page: PageChanged) -> str | None:
        return page.path or None

    pages = [PageChanged(path) for path in ("b", "a", "b", "", "")]
    with psycopg.connect(app.dsn) as connection:
        made = app.publish.enqueue_many(
            connection, pages, unique_key=path_of, on_conflict="keep", idempotency_key=None
        )
        sums = app.add.enqueue_many(
            connection, [(1, "x"), (2, "y")], idempotency_key=lambda each: f"sum {each[0]}"
        )
    assert [each.created for each in made] == [True, True, False, True, True]
    assert made[2].id == made[0].id
    assert [each.created for each in sums] == [True, True]
    assert app.rows() == (6, 6, 0)


@pytest.mark.acceptance("Q25")
@pytest.mark.unchecked("prunes a stream by hand")
def test_the_same_request_40_days_later_when_the_job_has_long_been_pruned(app: App) -> None:
    first = enqueue(app, app.dsn, idempotency_key="order 7")
    finish(app, first)
    with psycopg.connect(app.dsn) as connection:
        connection.execute("alter table leasebook.job_events disable trigger user")
        connection.execute("delete from leasebook.job_events")
        connection.execute("alter table leasebook.job_events enable trigger user")
        connection.execute("update leasebook.request_keys set at = at - interval '40 days'")
    again = enqueue(app, app.dsn, idempotency_key="order 7")
    assert (again.id, again.created) == (first.id, False)
    with psycopg.connect(app.dsn) as connection, pytest.raises(IdempotencyConflict):
        app.publish.enqueue(connection, PageChanged("b.md"), idempotency_key="order 7")
    assert app.rows() == (0, 0, 0)


@pytest.mark.case("C37")
@pytest.mark.parametrize("options", [{"unique_key": "k"}, {"idempotency_key": "r"}])
def test_repeatable_read_gets_the_key_or_an_honest_40001(app: App, options: Any) -> None:
    for commits in (False, True):
        with psycopg.connect(app.dsn) as first, psycopg.connect(app.dsn) as second:
            second.isolation_level = REPEATABLE
            # The snapshot is taken before the first has written.
            second.execute("select count(*) from leasebook.jobs")
            app.publish.enqueue(first, PAGE, **options)
            first.commit() if commits else first.rollback()
            if commits:
                with pytest.raises(SerializationFailure):
                    app.publish.enqueue(second, PAGE, **options)
                second.rollback()
            else:
                assert app.publish.enqueue(second, PAGE, **options).created
                second.rollback()
    assert app.rows() == (1, 1, 0)


@pytest.mark.case("C37")
@pytest.mark.parametrize("on_conflict", ["reject", "keep", "replace"])
def test_an_old_snapshot_does_not_keep_a_job_that_has_ended(app: App, on_conflict: Any) -> None:
    """It still shows the holder.  To believe it would lose the new work without a word."""
    first = enqueue(app, app.dsn, unique_key="k")
    with psycopg.connect(app.dsn) as connection:
        connection.isolation_level = REPEATABLE
        connection.execute("select count(*) from leasebook.jobs")
        finish(app, first)
        receipt = app.publish.enqueue(connection, PAGE, unique_key="k", on_conflict=on_conflict)
    assert receipt.created
    assert app.rows() == (4, 1, 0)


@pytest.mark.case("C26")
def test_a_taken_key_draws_no_number(app: App) -> None:
    first = enqueue(app, app.dsn, unique_key="k", idempotency_key="r")
    before = last_event_id(app.dsn)
    for _ in range(20):
        with psycopg.connect(app.dsn) as connection:
            kept = app.publish.enqueue(connection, PAGE, unique_key="k", on_conflict="keep")
            known = app.publish.enqueue(connection, PAGE, unique_key="k", idempotency_key="r")
            with pytest.raises(UniqueKeyTaken):
                app.publish.enqueue(connection, PAGE, unique_key="k")
        assert first.id == kept.id == known.id
    assert last_event_id(app.dsn) == before


@pytest.mark.acceptance("P09", "Q25")
def test_many_producers_of_few_keys_make_one_job_each(app: App) -> None:
    """Some roll back.  Of each key one job is there in the end, whoever made it."""

    def produce(number: int) -> set[tuple[str, Any]]:
        got: set[tuple[str, Any]] = set()
        with psycopg.connect(app.dsn) as connection:
            for turn in range(30):
                key = f"k{(number + turn) % 5}"
                unique = app.publish.enqueue(
                    connection, PAGE, unique_key=key, on_conflict="keep", queue=key
                )
                request = app.publish.enqueue(connection, PAGE, idempotency_key=key)
                if (number + turn) % 3 == 0:
                    connection.rollback()
                    continue
                connection.commit()
                got |= {(f"unique {key}", unique.id), (f"request {key}", request.id)}
        return got

    with ThreadPoolExecutor(6) as threads:
        seen = set[tuple[str, Any]]().union(*threads.map(produce, range(6)))
    assert len(seen) == len(dict(seen)) == 10
    assert app.rows() == (10, 10, 0)


def bad() -> list[dict[str, Any]]:
    options: list[dict[str, Any]] = []
    for value in ("", " ", "a\0", "\ud800", "k" * 10_000, 5, b"k", str):
        options += [{"unique_key": value}, {"idempotency_key": value}]
    options += [
        {"unique_key": "k", "on_conflict": "update"},
        {"unique_key": "k", "on_conflict": 1},
        {"on_conflict": "keep"},
    ]
    return options


def test_bad_keys_write_nothing(app: App, subtests: pytest.Subtests) -> None:
    grouped: Any = app.sync_page
    with psycopg.connect(app.dsn) as connection:
        for options in bad():
            with subtests.test(repr(options)[:60]), pytest.raises(InvalidValue):
                app.publish.enqueue(connection, PAGE, **options)
        for name in ("unique_key", "idempotency_key", "on_conflict"):
            with subtests.test(name), pytest.raises(InvalidValue, match=f"{name} for an item"):
                grouped.enqueue(connection, PAGE, group_key="g", **{name: "keep"})
    assert app.rows() == (0, 0, 0)


def test_a_key_may_hold_anything_else(app: App) -> None:
    keys = ("%s", "'", '"', "ä" * 256, "\\", "{a,b}", "null", "a b")
    with psycopg.connect(app.dsn, options="-c search_path= -c timezone=Asia/Kolkata") as connection:
        made = [app.publish.enqueue(connection, PAGE, unique_key=key, delay=9) for key in keys]
        kept = [
            app.publish.enqueue(
                connection, PAGE, unique_key=key, on_conflict="replace", delay=5, queue="default"
            )
            for key in keys
        ]
        for key in keys:
            app.publish.enqueue(connection, PAGE, idempotency_key=key)
            assert not app.publish.enqueue(connection, PAGE, idempotency_key=key).created
    assert [each.id for each in made] == [each.id for each in kept]


def test_another_schema_and_an_empty_search_path(database_dsn: str) -> None:
    app = App(database_dsn, "we'i\"rd name")
    app.book.migrate()
    with psycopg.connect(database_dsn, options="-c search_path=") as connection:
        for on_conflict in ("reject", "keep", "replace"):
            options: dict[str, Any] = {"unique_key": "k", "on_conflict": on_conflict, "delay": 60}
            app.publish.enqueue(connection, PAGE, **options)
        app.publish.enqueue(connection, PAGE, idempotency_key="r")
    assert app.rows() == (3, 2, 0)
