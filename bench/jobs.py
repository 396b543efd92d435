"""The application whose worker is measured: one job that does nothing but count itself."""

from __future__ import annotations

from leasebook import Book

from .counter import ran

book = Book()


@book.job
async def fetch(t: int) -> None:
    """``t`` is when it was enqueued, 0 when nobody asks."""
    ran(t)
