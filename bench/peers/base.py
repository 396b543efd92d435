"""What a queue must be able to do to be measured.

Everything runs in a process of its own that loads this queue only.  Libraries are imported where
they are used: the program that measures reads these modules too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import ClassVar, Protocol

import psycopg

from ..counter import now

WARM_UP = 20


class Peer(Protocol):
    """One queue.  ``batch`` is how many jobs it takes at once."""

    #: SQL: is any due job not yet committed as done?
    PENDING: ClassVar[str]
    #: SQL that seeds n finished jobs, with everything the queue keeps of them; takes ``%(n)s``.
    SEED_FINISHED: ClassVar[str]
    dsn: str
    batch: int

    def setup(self) -> None:
        """Make the queue's tables in an empty database."""
        ...

    def bulk(self, jobs: int) -> float:
        """Enqueue many by the best way the queue has; seconds."""
        ...

    def single(self, jobs: int) -> float:
        """Enqueue one by one on one connection, each with its own commit; seconds."""
        ...

    def paced(self, jobs: int, gap: float) -> None:
        """Enqueue one every ``gap`` seconds, each with the time at which it was asked."""
        ...

    def delayed(self, jobs: int) -> None:
        """Enqueue jobs that are due tomorrow."""
        ...

    def prepare(self) -> None:
        """Import what a worker needs, before the clock starts."""
        ...

    def work(self) -> None:
        """Be one worker process until told to end; each job calls ``counter.ran``."""
        ...


def seed_finished(peer: Peer, jobs: int) -> None:
    """Leave behind what ``jobs`` finished jobs leave behind."""
    with psycopg.connect(peer.dsn, autocommit=True) as connection:
        connection.execute(peer.SEED_FINISHED, {"n": jobs})


def timed(once: Callable[[], object], times: int) -> float:
    """Seconds for so many calls, after a few that do not count."""
    for _ in range(WARM_UP):
        once()
    began = time.perf_counter()
    for _ in range(times):
        once()
    return time.perf_counter() - began


async def timed_async(once: Callable[[], Awaitable[object]], times: int) -> float:
    """The same for coroutines."""
    for _ in range(WARM_UP):
        await once()
    began = time.perf_counter()
    for _ in range(times):
        await once()
    return time.perf_counter() - began


def on_time(once: Callable[[int], object], times: int, gap: float) -> None:
    """Call on a fixed timetable, so that a slow call does not move the later ones."""
    start = time.monotonic()
    for number in range(times):
        time.sleep(max(0.0, start + number * gap - time.monotonic()))
        once(now())


async def on_time_async(once: Callable[[int], Awaitable[object]], times: int, gap: float) -> None:
    """The same for coroutines."""
    start = time.monotonic()
    for number in range(times):
        await asyncio.sleep(max(0.0, start + number * gap - time.monotonic()))
        await once(now())
