"""An enqueue with nothing beside it is a transaction by itself, and has committed at its return."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from leasebook import Autocommit, InvalidValue, LeasebookError, UniqueKeyTaken
from leasebook.infra.postgres.accept import accepting
from leasebook.infra.postgres.accept_parts import Question
from leasebook.infra.postgres.caller_errors import CallerRefused
from leasebook.infra.postgres.callers import answered
from leasebook.infra.postgres.schema.name import Schema
from tests.support.servers import wait_until

from .ground import NOTHING, App, PageChanged, pending, settled, url_over
from .test_ringing import listening
from .test_ringing import noisy as noisy

PAGE = PageChanged("a.md")
KINDS = (
    "psycopg.Connection",
    "psycopg.AsyncConnection",
    "Session over psycopg",
    "Connection over psycopg2",
    "AsyncSession over psycopg",
    "AsyncConnection over asyncpg",
)


def first(given: Any) -> str:
    """The first argument as a key."""
    return str(given[0])


@asynccontextmanager
async def alone(kind: str, dsn: str) -> AsyncGenerator[Any]:
    """A caller of one kind in autocommit mode."""
    if kind == "psycopg.Connection":
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection
        return
    if kind == "psycopg.AsyncConnection":
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as waiting:
            yield waiting
        return
    face, _, driver = kind.partition(" over ")
    if face.startswith("Async"):
        engine = create_async_engine(url_over(driver, dsn), isolation_level="AUTOCOMMIT")
        async with AsyncSession(engine) if face == "AsyncSession" else engine.connect() as caller:
            yield caller
        await engine.dispose()
        return
    plain = create_engine(url_over(driver, dsn), isolation_level="AUTOCOMMIT")
    with Session(plain) if face == "Session" else plain.connect() as caller:
        yield caller
    plain.dispose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_is_there_when_the_call_returns(app: App, kind: str) -> None:
    publish: Any = app.publish
    add: Any = app.add
    sync_page: Any = app.sync_page
    async with alone(kind, app.dsn) as caller:
        by_itself = Autocommit(caller)
        receipt = await settled(publish.enqueue(by_itself, PAGE))
        assert receipt.id is not None
        assert app.rows() == (1, 1, 0)
        await settled(sync_page.enqueue(by_itself, PAGE, group_key="k"))
        assert app.rows() == (1, 1, 1)
        # Of several statements, and of several jobs that are not alike.
        await settled(add.enqueue(by_itself, 1, unique_key="k", idempotency_key="r"))
        many = await settled(add.enqueue_many(by_itself, [(1, "a"), (2, "b")], unique_key=str))
        assert [each.created for each in many] == [True, True]
        assert app.rows() == (4, 4, 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_refused_leaves_nothing_and_the_caller_as_it_was(app: App, kind: str) -> None:
    """The second of two jobs meets a key that is taken: the first was written before."""
    add: Any = app.add
    async with alone(kind, app.dsn) as caller:
        by_itself = Autocommit(caller)
        await settled(add.enqueue(by_itself, 1, unique_key="2"))
        with pytest.raises(UniqueKeyTaken):
            await settled(add.enqueue_many(by_itself, [(1, "x"), (2, "x")], unique_key=first))
        assert app.rows() == (1, 1, 0)
        await settled(add.enqueue(by_itself, 3))
        assert app.rows() == (2, 2, 0)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_of_the_server_leaves_nothing_and_the_caller_as_it_was(
    app: App, kind: str
) -> None:
    add: Any = app.add
    with psycopg.connect(app.dsn) as connection:
        connection.execute("alter table leasebook.request_keys rename to gone")
    async with alone(kind, app.dsn) as caller:
        by_itself = Autocommit(caller)
        with pytest.raises(Exception, match="request_keys"):
            await settled(add.enqueue(by_itself, 1, idempotency_key="r"))
        assert app.rows() == NOTHING
        await settled(add.enqueue(by_itself, 1))
        assert app.rows() == (1, 1, 0)
    with psycopg.connect(app.dsn) as connection:
        connection.execute("alter table leasebook.gone rename to request_keys")


def test_one_job_is_one_message(app: App) -> None:
    engine = create_engine(url_over("psycopg2", app.dsn), isolation_level="AUTOCOMMIT")
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    with engine.connect() as caller:
        app.publish.enqueue(Autocommit(caller), PAGE)
        app.publish.enqueue_many(Autocommit(caller), [PAGE] * 100)
    engine.dispose()
    assert len(sent) == 2
    assert app.rows() == (101, 101, 0)


async def test_what_is_no_connection_in_autocommit_mode_is_refused(
    app: App, subtests: pytest.Subtests
) -> None:
    engine = create_engine(url_over("psycopg", app.dsn))
    with (
        psycopg.connect(app.dsn) as transactional,
        psycopg.connect(app.dsn, autocommit=True) as busy,
        busy.transaction(),
        engine.connect() as connection,
    ):
        callers: list[Any] = [transactional, busy, connection, app.dsn, None, Autocommit(busy)]
        for caller in callers:
            with subtests.test(type(caller).__name__), pytest.raises(LeasebookError):
                app.publish.enqueue(Autocommit(caller), PAGE)
        with pytest.raises(CallerRefused, match="autocommit mode"):
            app.publish.enqueue(Autocommit(transactional), PAGE)
        async with await psycopg.AsyncConnection.connect(app.dsn) as waiting:
            with pytest.raises(CallerRefused, match="autocommit mode"):
                await app.publish.enqueue(Autocommit(waiting), PAGE)
    engine.dispose()
    assert app.rows() == NOTHING


def test_it_enqueues_and_asks_nothing(app: App) -> None:
    with psycopg.connect(app.dsn, autocommit=True) as connection:
        by_itself: Any = Autocommit(connection)
        with pytest.raises(CallerRefused, match="only enqueues"):
            app.book.alive(by_itself, "s")


def test_arguments_are_refused_before_anything_is_sent(app: App) -> None:
    with psycopg.connect(app.dsn, autocommit=True) as connection:
        with pytest.raises(InvalidValue):
            app.book.enqueue(Autocommit(connection), "add", {"a": "no number"})
        app.book.enqueue(Autocommit(connection), "add", {"a": 1})
    assert app.rows() == (1, 1, 0)


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_are_woken(noisy: App, kind: str) -> None:
    publish: Any = noisy.publish
    async with alone(kind, noisy.dsn) as caller:
        with listening(noisy) as bell:
            await settled(publish.enqueue(Autocommit(caller), PAGE))
            assert bell.wait(30.0)
            wait_until(lambda: pending(noisy) == 0, "forgotten")


async def test_who_is_cancelled_in_the_middle_leaves_nothing(app: App) -> None:
    """The first of several statements has been answered, and the second waits for somebody."""
    add: Any = app.add
    with psycopg.connect(app.dsn) as other:
        other.execute("lock table leasebook.request_keys")
        async with await psycopg.AsyncConnection.connect(app.dsn, autocommit=True) as caller:
            enqueue = add.enqueue(Autocommit(caller), 1, idempotency_key="r")
            task = asyncio.ensure_future(enqueue)
            with psycopg.connect(app.dsn, autocommit=True) as watcher:
                waiting = "select exists (select from pg_locks where not granted)"
                while watcher.execute(waiting).fetchone() != (True,):
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert caller.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert app.rows() == NOTHING


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", range(4))
def test_whatever_goes_wrong_is_taken_back(
    app: App, place: int, error: type[BaseException]
) -> None:
    """Also with BEGIN, which the server may have heard of, and with COMMIT."""
    said: list[str] = []

    def ask(question: Question) -> Sequence[Any]:
        said.append(question[0])
        if len(said) == place + 1:
            raise error
        with psycopg.connect(app.dsn) as connection:
            cursor = connection.execute(question[0].encode(), question[1])
            return cursor.fetchall() if cursor.description else ()

    order = app.add.order((1,), {"idempotency_key": "r"}, {})
    questions = accepting(Schema("leasebook"), [order], alone=True)
    with pytest.raises(error):
        answered(questions, ask)
    assert said[0] == "begin"
    assert said[-1] == "rollback"
    assert len(said) == place + 2


async def test_of_a_closed_connection_its_driver_tells(app: App) -> None:
    with psycopg.connect(app.dsn, autocommit=True) as connection:
        pass
    with pytest.raises(psycopg.OperationalError, match="closed"):
        app.publish.enqueue(Autocommit(connection), PAGE)
    async with await psycopg.AsyncConnection.connect(app.dsn, autocommit=True) as waiting:
        pass
    with pytest.raises(psycopg.OperationalError, match="closed"):
        await app.publish.enqueue(Autocommit(waiting), PAGE)


def test_threads_share_a_connection_and_lose_nothing(app: App) -> None:
    """Some enqueues are refused in the middle of a transaction of their own, others beside them."""
    with psycopg.connect(app.dsn, autocommit=True) as connection:
        by_itself = Autocommit(connection)
        app.add.enqueue(by_itself, 0, unique_key="2")

        def enqueue(number: int) -> bool:
            if number % 3:
                with pytest.raises(UniqueKeyTaken):
                    app.add.enqueue_many(by_itself, [(1, "x"), (2, "x")], unique_key=first)
                return False
            app.add.enqueue(Autocommit(connection), number)
            return True

        with ThreadPoolExecutor(4) as pool:
            count = sum(pool.map(enqueue, range(300)))
    assert app.rows() == (count + 1, count + 1, 0)


async def test_tasks_share_a_connection_and_lose_nothing(app: App) -> None:
    add: Any = app.add
    async with await psycopg.AsyncConnection.connect(app.dsn, autocommit=True) as connection:
        by_itself = Autocommit(connection)
        many = [
            add.enqueue(by_itself, n, **({"unique_key": "k"} if n % 2 else {})) for n in range(40)
        ]
        results = await asyncio.gather(*many, return_exceptions=True)
    taken = [each for each in results if isinstance(each, UniqueKeyTaken)]
    assert len(taken) == 19
    assert app.rows() == (21, 21, 0)


def test_a_refused_caller_keeps_its_transaction(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        app.add.enqueue(connection, 1)
        with pytest.raises(CallerRefused):
            app.add.enqueue(Autocommit(connection), 2)
    assert app.rows() == (1, 1, 0)
