"""Workers hear of what was committed, whoever enqueued it and over whatever connection."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session

from leasebook.infra.ports import StoreUnavailable, Wakeup
from leasebook.infra.postgres import lines
from leasebook.infra.postgres.commits import PostgresCommits
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import channel
from tests.support.servers import wait_until

from .ground import App, PageChanged, pending, url_over

#: A program that ends right after its commit.  Its notifier would not look for a long while.
PROGRAM = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import psycopg
from leasebook import Book
from leasebook.infra.app import notifier
notifier.LOOKS_SECONDS = (300.0,) * len(notifier.LOOKS_SECONDS)
notifier.ASK_SECONDS = 300.0
book = Book(sys.argv[1])

@book.job
def work(number: int) -> None: ...

def enqueue() -> None:
    with psycopg.connect(sys.argv[1]) as connection:
        work.enqueue(connection, 1)

if sys.argv[2] == "itself":
    enqueue()
elif sys.argv[2] == "a process":
    child = multiprocessing.get_context("fork").Process(target=enqueue)
    child.start()
    child.join()
else:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(enqueue).result()
"""


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


@pytest.mark.parametrize("who", ["itself", "a process", "a pool"])
def test_a_program_that_ends_after_its_commit_rings(noisy: App, who: str) -> None:
    """Its thread ends with it; what it has committed is not left to polling."""
    with listening(noisy) as bell:
        subprocess.run([sys.executable, "-c", PROGRAM, noisy.dsn, who], check=True, timeout=60)
        assert bell.wait(30.0)


def test_a_connection_is_made_before_the_first_question() -> None:
    """The notifier measures questions, to leave a slow server alone; this would look like one."""
    with pytest.raises(StoreUnavailable):
        PostgresCommits("host=127.0.0.1 port=1", Schema("leasebook"))


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
        line = lines.line_of(connection)
        assert not lines.is_over(line)
        connection.commit()
        assert lines.is_over(line)
    with Session(engine) as session:
        noisy.publish.enqueue(session, PAGE)
        line = lines.line_of(session)
        session.rollback()
        assert lines.is_over(line)
    engine.dispose()
    assert lines.is_over(line), "closed"


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_the_end_is_seen_on_an_asynchronous_connection(noisy: App, driver: str) -> None:
    engine = create_async_engine(url_over(driver, noisy.dsn))
    async with engine.connect() as connection:
        await noisy.publish.enqueue(connection, PAGE)
        line = lines.line_of(connection)
        assert not lines.is_over(line)
        await connection.commit()
        assert lines.is_over(line)
    async with AsyncSession(engine) as session:
        await noisy.publish.enqueue(session, PAGE)
        line = lines.line_of(session)
        assert not lines.is_over(line)
        await session.rollback()
        assert lines.is_over(line)
    await engine.dispose()
    assert lines.is_over(line), "closed"


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
