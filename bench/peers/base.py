"""What a queue must be able to do to be measured.

Everything runs in a process of its own that loads this queue only.  Libraries are imported where
they are used: the program that measures reads these modules too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import psycopg

from ..counter import now

T = TypeVar("T")
WARM_UP = 20
#: Names of the queues that a worker serves when it is measured idle.
QUEUES = tuple(f"queue_{number}" for number in range(20))


class Peer:
    """One queue on one database.  ``batch`` is how many jobs it takes at once."""

    #: SQL: is any due job not yet committed as done?
    PENDING: ClassVar[str]
    #: SQL that seeds jobs, with everything the queue keeps of them; takes ``%(n)s``.
    FINISHED: ClassVar[str] = ""
    DELAYED: ClassVar[str] = ""
    #: measure -> why this queue cannot be measured so
    LACKS: ClassVar[Mapping[str, str]] = MappingProxyType({"hot": "it has no groups"})

    def __init__(self, dsn: str, batch: int) -> None:
        self.dsn = dsn
        self.batch = batch

    def setup(self) -> None:
        """Make the queue's tables in an empty database."""
        raise NotImplementedError

    def bulk(self, jobs: int) -> float:
        """Enqueue many by the best way the queue has; seconds."""
        raise NotImplementedError

    def single(self, jobs: int) -> float:
        """Enqueue one by one on one connection, each with its own commit; seconds."""
        raise NotImplementedError

    def paced(self, jobs: int, gap: float) -> None:
        """Enqueue one every ``gap`` seconds, each with the time at which it was asked."""
        raise NotImplementedError

    def finished(self, jobs: int) -> None:
        """Leave behind what so many finished jobs leave behind."""
        self.execute(self.FINISHED, {"n": jobs})

    def delayed(self, jobs: int) -> None:
        """Leave jobs behind that are due tomorrow."""
        self.execute(self.DELAYED, {"n": jobs})

    def keyed(self, jobs: int) -> None:
        """Leave jobs of one key behind that wait for their turn; nothing where there are none."""

    def held(self, jobs: int) -> None:
        """Leave failed jobs behind that wait for a person; nothing where there are none."""

    def hot(self, producers: int, seconds: float, pause: float) -> float:
        """Items a second that many producers add to one key, each transaction open for ``pause``.

        Each producer is a process with a connection of its own, and commits every item.
        """
        raise NotImplementedError

    def writers(self, producers: int, seconds: float, ringing: bool) -> float:
        """Jobs a second that many producers commit, with wake-ups for the workers or without."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Import what a worker needs, before the clock starts."""

    def work(self, many: bool) -> None:
        """Be one worker process until told to end, on the usual queue or on ``QUEUES``.

        Each job calls ``counter.ran``.
        """
        raise NotImplementedError

    def execute(self, statement: str, values: Mapping[str, object] | None = None) -> None:
        """Run one statement."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """On uvloop, which every queue here is fastest with."""
    answer: T = import_module("uvloop").run(coroutine)
    return answer


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
