"""Every kind of caller: the job stands or falls with the caller's own transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from leasebook import Book, NoTransaction, Receipt
from leasebook.infra.postgres.caller_errors import CallerRefused
from leasebook.infra.postgres.schema.errors import SchemaIncomplete

from .ground import KINDS, NOTHING, App, PageChanged, settled, within


@pytest.mark.acceptance("P02")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_joins_the_callers_transaction(app: App, kind: str) -> None:
    publish: Any = app.publish

    def act(caller: Any) -> Any:
        return publish.enqueue(caller, PageChanged("a.md"))

    await within(kind, app.dsn, act, undo=True)
    assert app.rows() == NOTHING
    receipt = await within(kind, app.dsn, act)
    assert isinstance(receipt, Receipt)
    assert receipt.id is not None
    assert receipt.id.version == 7
    assert app.rows() == (1, 1, 0)


@pytest.mark.acceptance("Q01")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rollback_leaves_no_trace_of_many(app: App, kind: str) -> None:
    sync_page: Any = app.sync_page

    def path_of(page: PageChanged) -> str:
        return page.path

    def act(caller: Any) -> Any:
        pages = [PageChanged(f"{number}.md") for number in range(5)]
        return sync_page.enqueue_many(caller, pages, group_key=path_of)

    await within(kind, app.dsn, act, undo=True)
    assert app.rows() == NOTHING
    receipts = await within(kind, app.dsn, act)
    numbers = [receipt.item_id for receipt in receipts]
    assert numbers == sorted(numbers)
    assert app.rows() == (0, 0, 5)


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_to_enqueue_is_no_error(app: App, kind: str) -> None:
    add: Any = app.add
    assert await within(kind, app.dsn, lambda caller: add.enqueue_many(caller, [])) == ()


@pytest.mark.acceptance("Q02")
async def test_a_failing_enqueue_takes_the_business_change_with_it(app: App) -> None:
    missing = App(app.dsn, "not_there")
    engine = app.book.engine()
    with engine.begin() as connection:
        connection.execute(text("create table pages (path text primary key)"))

    def change() -> None:
        with Session(engine) as session, session.begin():
            session.execute(text("insert into pages values ('a.md')"))
            missing.publish.enqueue(session, PageChanged("a.md"))

    with pytest.raises(SchemaIncomplete, match="not_there"):
        change()
    with engine.connect() as connection:
        assert connection.scalar(text("select count(*) from pages")) == 0
    engine.dispose()


@pytest.mark.acceptance("P02")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_schema_that_was_not_migrated_is_named_with_what_to_do(app: App, kind: str) -> None:
    """Whatever the driver calls it; a later release's column that is missing is as good as that."""
    missing: Any = App(app.dsn, "not_there")
    acts: list[Callable[[Any], Any]] = [
        lambda caller: missing.publish.enqueue(caller, PageChanged("a.md")),
        lambda caller: missing.add.enqueue(caller, 1, unique_key="k"),
        lambda caller: missing.sync_page.enqueue(caller, PageChanged("a.md"), group_key="k"),
        lambda caller: missing.book.alive(caller, "s"),
    ]
    for act in acts:
        with pytest.raises(SchemaIncomplete) as refused:
            await within(kind, app.dsn, act)
        assert refused.value.code == "schema_incomplete"
        assert "does not exist" in str(refused.value)
        assert str(refused.value).endswith("Run: leasebook migrate --schema not_there")
        assert refused.value.__cause__ is not None
    with psycopg.connect(app.dsn) as connection:
        connection.execute("alter table leasebook.jobs rename column on_expired to gone")
    there: Any = app.publish
    with pytest.raises(SchemaIncomplete, match="on_expired"):
        await within(kind, app.dsn, lambda caller: there.enqueue(caller, PageChanged("a.md")))
    with psycopg.connect(app.dsn) as connection:
        connection.execute("alter table leasebook.jobs rename column gone to on_expired")


@pytest.mark.acceptance("Q02")
async def test_without_a_transaction_nothing_is_enqueued(
    app: App, subtests: pytest.Subtests
) -> None:
    engine = app.book.engine()
    async_engine = create_async_engine("postgresql+psycopg://")
    automatic = engine.execution_options(isolation_level="AUTOCOMMIT")
    with (
        psycopg.connect(app.dsn, autocommit=True) as bare,
        automatic.connect() as connection,
        Session(automatic) as session,
    ):
        callers: list[Any] = [
            engine,
            async_engine,
            app.dsn,
            sessionmaker(engine),
            bare,
            connection,
            session,
        ]
        for caller in callers:
            with subtests.test(type(caller).__name__), pytest.raises(NoTransaction) as caught:
                app.publish.enqueue(caller, PageChanged("a.md"))
            assert caught.value.code == "no_transaction"
        async with await psycopg.AsyncConnection.connect(app.dsn, autocommit=True) as waiting:
            with pytest.raises(NoTransaction, match="AUTOCOMMIT"):
                await app.publish.enqueue(waiting, PageChanged("a.md"))

    async def connect() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(app.dsn)

    made = create_async_engine(
        "postgresql+psycopg://", async_creator=connect, isolation_level="AUTOCOMMIT"
    )
    async with made.connect() as itself:
        with pytest.raises(NoTransaction, match="AUTOCOMMIT"):
            await app.publish.enqueue(itself, PageChanged("a.md"))
    await made.dispose()
    engine.dispose()
    assert app.rows() == NOTHING


def test_a_caller_that_streams_its_results_enqueues_all_the_same(app: App) -> None:
    engine = app.book.engine().execution_options(stream_results=True)
    with engine.begin() as connection:
        app.publish.enqueue(connection, PageChanged("a.md"))
    engine.dispose()
    assert app.rows() == (1, 1, 0)


def test_what_is_no_caller_is_refused(app: App, subtests: pytest.Subtests) -> None:
    with psycopg.connect(app.dsn) as connection:
        callers: list[Any] = [None, object(), connection.cursor(), {}]
        for caller in callers:
            with subtests.test(type(caller).__name__), pytest.raises(CallerRefused):
                app.publish.enqueue(caller, PageChanged("a.md"))
    lite = create_engine("sqlite://")
    with lite.connect() as other, pytest.raises(CallerRefused, match="sqlite"):
        app.publish.enqueue(other, PageChanged("a.md"))
    lite.dispose()
    assert app.rows() == NOTHING


def test_an_autocommit_connection_inside_a_transaction_is_one(app: App) -> None:
    with psycopg.connect(app.dsn, autocommit=True) as connection, connection.transaction():
        app.publish.enqueue(connection, PageChanged("a.md"))
        assert app.rows() == NOTHING
    assert app.rows() == (1, 1, 0)


async def test_a_caller_in_a_pipeline_enqueues_all_the_same(app: App) -> None:
    """There an answer comes with the next synchronisation only."""
    with psycopg.connect(app.dsn) as connection, connection.pipeline():
        connection.execute("select 1")
        assert app.publish.enqueue(connection, PageChanged("a.md")).id is not None
        many = app.publish.enqueue_many(
            connection,
            [PageChanged("b.md"), PageChanged("c.md")],
            unique_key=lambda each: each.path,
        )
        assert len(many) == 2
    publish: Any = app.publish
    async with await psycopg.AsyncConnection.connect(app.dsn) as caller, caller.pipeline():
        assert (await publish.enqueue(caller, PageChanged("d.md"))).id is not None
    assert app.rows() == (4, 4, 0)


def test_savepoints_undo_what_was_enqueued_in_them(app: App) -> None:
    engine = app.book.engine()
    with Session(engine) as session, session.begin():
        app.publish.enqueue(session, PageChanged("kept.md"))
        with session.begin_nested() as savepoint:
            app.publish.enqueue(session, PageChanged("undone.md"))
            savepoint.rollback()
        with session.begin_nested():
            kept = app.publish.enqueue(session, PageChanged("also.md"))
    engine.dispose()
    assert app.rows() == (2, 2, 0)
    assert kept.id is not None
    assert [each.event.kind for each in app.book.log().stream(kept.id)] == ["enqueued"]


def test_a_connection_of_many_ways_is_used_as_it_is(app: App) -> None:
    """Row factories, cursor factories and session settings of the caller change nothing."""
    with psycopg.Connection[DictRow].connect(
        app.dsn,
        row_factory=dict_row,
        cursor_factory=psycopg.ClientCursor[DictRow],
        options="-c search_path= -c datestyle=SQL,DMY -c timezone=Asia/Kolkata",
    ) as connection:
        receipts = app.add.enqueue_many(connection, [(1, "100 %s"), (2,)])
        item = app.sync_page.enqueue(connection, PageChanged("a%s.md"), group_key="100%")
    assert len({receipt.xid for receipt in (*receipts, item)}) == 1
    assert app.rows() == (2, 2, 1)


@pytest.mark.parametrize("schema", ["Jobs-x", 'we"ird name', "leasebook"])
@pytest.mark.parametrize("kind", ["Session", "psycopg.AsyncConnection"])
async def test_any_schema_and_an_empty_search_path(
    database_dsn: str, schema: str, kind: str
) -> None:
    app = App(database_dsn, schema)
    app.book.migrate()

    async def act(caller: Any) -> None:
        empty = "set local search_path = ''"
        await settled(caller.execute(text(empty) if kind == "Session" else empty.encode()))
        await settled(app.add.enqueue(caller, 1))
        await settled(app.sync_page.enqueue(caller, PageChanged("a.md"), group_key="a.md"))

    engine = app.book.engine()
    if kind == "Session":
        with Session(engine) as session, session.begin():
            await act(session)
    else:
        await within(kind, database_dsn, act)
    engine.dispose()
    assert app.rows() == (1, 1, 1)


async def test_one_round_trip(app: App) -> None:
    """The caller's own statement counter sees one statement for one enqueue, however many jobs."""
    engine = app.book.engine()
    seen: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def count(*given: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        seen.append(given[2])

    with Session(engine) as session, session.begin():
        app.add.enqueue_many(session, [(number,) for number in range(1_000)])
        assert len(seen) == 1
        app.add.enqueue(session, 1)
        assert len(seen) == 2
    engine.dispose()


def test_book_may_be_without_a_database(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of the user's is enough: no server is started to ring a bell."""
    monkeypatch.delenv("LEASEBOOK_DSN", raising=False)
    started: list[object] = []
    monkeypatch.setattr("leasebook.infra.postgres.server.embedded_server", started.append)
    book = Book()

    @book.job
    def work(number: int) -> None: ...

    with psycopg.connect(app.dsn) as connection:
        work.enqueue(connection, 1)
    assert app.rows() == (1, 1, 0)
    assert not started
