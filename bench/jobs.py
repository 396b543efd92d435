"""The application whose worker is measured: jobs that do nothing but count themselves."""

from __future__ import annotations

from leasebook import Book, Group

from .counter import ran
from .peers.base import QUEUES

book = Book()
#: The same job on twenty queues.
many = Book()
silent = Book(notify=False)


@book.job
async def fetch(t: int) -> None:
    """``t`` is when it was enqueued, 0 when nobody asks."""
    ran(t)


@book.job(retry=0)
async def fail(t: int) -> None:
    """Fails for good, and is held."""
    raise ValueError(t)


@book.job(group=Group(window=1, max_hold=10, max_size=50))
async def gather(items: list[int]) -> None:
    """Takes what many producers add to one key."""


@silent.job(name="fetch")
async def fetch_silently(t: int) -> None:
    """As ``fetch``; nobody is woken when it is enqueued."""
    ran(t)


for queue in QUEUES:

    @many.job(name=f"fetch on {queue}", queue=queue)
    async def fetch_there(t: int) -> None:
        """As ``fetch``."""
        ran(t)
