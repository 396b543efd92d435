"""An application to enqueue from, and what its database holds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import psycopg
from attrs import field, frozen
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from leasebook import Book, Group, Run


class Colour(Enum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


@frozen
class Author:
    """Somebody, inside a page."""

    name: str
    age: int = 30


@frozen
class PageChanged:
    """A product event with something of everything."""

    path: str
    author: Author = Author("Ada")
    tags: list[str] = field(factory=list[str])
    when: datetime | None = None
    price: Decimal = Decimal("1.10")
    colour: Colour = Colour.RED
    score: float = 0.5
    count: int = 1
    body: bytes = b""
    extra: dict[str, Any] = field(factory=dict[str, Any])


class App:
    """A book with job types of every kind."""

    def __init__(self, dsn: str, schema: str = "leasebook", *, notify: bool = False) -> None:
        self.dsn = dsn
        self.schema = schema
        self.book = book = Book(dsn, schema=schema, notify=notify)

        @book.job
        async def publish(run: Run, page: PageChanged) -> None:
            run.log.info("published", path=page.path)

        @book.job(queue="sums", priority=7, retry=1, timeout=30, lease=20, on_exhausted="drop")
        def add(run: Run, a: int, b: str = "x") -> str:
            return f"{a}{b}"

        @book.job(group=Group(window=10, max_hold=60), retry=1)
        async def sync_page(run: Run, items: list[PageChanged]) -> int:
            return len(items)

        @book.job
        def anything(value: Any) -> Any:
            return value

        self.publish, self.add, self.sync_page, self.anything = publish, add, sync_page, anything

    def rows(self) -> tuple[int, int, int]:
        """How many committed events, jobs and items there are."""
        quoted = '"' + self.schema.replace('"', '""') + '"'
        tables = ("job_events", "jobs", "group_inbox")
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            counts = [
                connection.execute(f"select count(*) from {quoted}.{table}".encode()).fetchone()
                for table in tables
            ]
        events, jobs, items = (count[0] for count in counts if count is not None)
        return events, jobs, items


NOTHING = (0, 0, 0)
ID = UUID("01a227ed-bd06-706b-9143-ff98648232e2")

Act = Callable[[Any], Any]
KINDS = (
    "Session",
    "scoped_session",
    "Connection",
    "AsyncSession",
    "AsyncConnection",
    "psycopg.Connection",
    "psycopg.AsyncConnection",
    "Session over psycopg2",
    "Connection over psycopg2",
    "AsyncSession over asyncpg",
    "AsyncConnection over asyncpg",
)


def url_over(driver: str, dsn: str) -> URL:
    """A DSN of libpq's as SQLAlchemy writes it for another driver."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    return URL.create(
        f"postgresql+{driver}",
        username=parts.get("user"),
        password=parts.get("password"),
        host=parts.get("host"),
        port=int(parts["port"]) if "port" in parts else None,
        database=parts.get("dbname"),
    )


class Undo(Exception):
    """Raised to roll a caller back."""


async def within(kind: str, dsn: str, act: Act, *, undo: bool = False) -> Any:
    """Let ``act`` use a caller of one kind inside a transaction; commit it, or roll it back."""
    try:
        return await (_within_async if "Async" in kind else _within)(kind, dsn, act, undo)
    except Undo:
        return None


async def _within(kind: str, dsn: str, act: Act, undo: bool) -> Any:
    if kind == "psycopg.Connection":
        with psycopg.connect(dsn) as connection:
            return _done(act(connection), undo)
    kind, _, driver = kind.partition(" over ")
    if driver:
        engine = create_engine(url_over(driver, dsn))
    else:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    try:
        if kind == "Connection":
            with engine.begin() as begun:
                return _done(act(begun), undo)
        if kind == "Session":
            with Session(engine) as session, session.begin():
                return _done(act(session), undo)
        scoped = scoped_session(sessionmaker(engine))
        with scoped.begin():
            return _done(act(scoped), undo)
    finally:
        engine.dispose()


async def _within_async(kind: str, dsn: str, act: Act, undo: bool) -> Any:
    if kind == "psycopg.AsyncConnection":
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            return _done(await act(connection), undo)

    async def connect() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(dsn)

    kind, _, driver = kind.partition(" over ")
    if driver:
        engine = create_async_engine(url_over(driver, dsn))
    else:
        engine = create_async_engine("postgresql+psycopg://", async_creator=connect)
    try:
        if kind == "AsyncConnection":
            async with engine.begin() as begun:
                return _done(await act(begun), undo)
        async with AsyncSession(engine) as session, session.begin():
            return _done(await act(session), undo)
    finally:
        await engine.dispose()


def _done(result: Any, undo: bool) -> Any:
    if undo:
        raise Undo
    return result


async def settled(answer: Any) -> Any:
    """The answer itself, or what comes of awaiting it."""
    return await answer if inspect.isawaitable(answer) else answer


def pending(app: App) -> int:
    """How many transactions the book's notifier watches."""
    notifier: Any = vars(app.book)["_notifier"]
    return 0 if notifier is None else notifier.pending
