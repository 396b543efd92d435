"""Another application on the same database and the same queue, with names of its own."""

from __future__ import annotations

from leasebook import Book, Run
from tests.worker.app import effect

book = Book()


@book.job
async def foreign(run: Run, n: int = 0) -> int:
    effect(run)
    return n


@book.job
async def outlandish(run: Run) -> None:
    effect(run)
