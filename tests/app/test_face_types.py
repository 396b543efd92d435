"""What type checkers say of the face: `make check` reads this file, and pytest only the end of it.

An ignore that is not needed is an error to mypy, so each marks a mistake that it must find.
"""

from __future__ import annotations

from typing import assert_type

import psycopg
from attrs import frozen
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from leasebook import Book, Group, Receipt, Run


@frozen
class PageChanged:
    """A product event."""

    path: str


book = Book()


@book.job(retry=1, group=Group(window=10, max_hold=60))
async def sync_page(run: Run, items: list[PageChanged]) -> None: ...
@book.job
def add(run: Run, a: int, b: str = "x") -> None: ...
@book.job(queue="slow")
async def one(page: PageChanged) -> None: ...
@book.job(timeout=3)
async def none(run: Run) -> int:
    return 1


async def face(
    s: Session, a: AsyncSession, c: psycopg.Connection, ac: psycopg.AsyncConnection
) -> None:
    """Never called: the types are what matters."""
    assert_type(sync_page.enqueue(s, PageChanged("a"), group_key="x", queue="q"), Receipt)
    assert_type(await sync_page.enqueue(a, PageChanged("a"), group_key="x"), Receipt)
    assert_type(add.enqueue(c, 1, b="x"), Receipt)
    assert_type(add.enqueue(c, 1, queue="q", delay=3), Receipt)
    assert_type(add.enqueue(c, 1, "x", queue="q", delay=3), Receipt)
    assert_type(await add.enqueue(ac, 1, "x", queue="q", delay=3), Receipt)
    assert_type(one.enqueue(s, PageChanged("x"), run_at=None), Receipt)
    assert_type(none.enqueue(s, label="x"), Receipt)
    assert_type(none.enqueue(s), Receipt)
    assert_type(add.options(queue="x").enqueue(s, 1, b="y"), Receipt)
    assert_type(book.enqueue(s, "x", {}, queue="q"), Receipt)
    sync_page.enqueue_many(s, [PageChanged("a")], group_key=lambda p: p.path)
    add.enqueue(c, "1")  # type: ignore
    add.enqueue(c, "1", queue="x")  # type: ignore
    add.enqueue(c, 1, queu="x")  # type: ignore
    add.enqueue("dsn", 1)  # type: ignore
    sync_page.enqueue(s, PageChanged("a"))  # type: ignore
    sync_page.enqueue(s, "x", group_key="a")  # type: ignore
    one.enqueue(s)  # type: ignore
    add.options(queu="x")  # type: ignore


def test_the_job_types_of_this_file_are_registered() -> None:
    assert set(book.jobs) == {"sync_page", "add", "one", "none"}
