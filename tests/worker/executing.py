"""An executor by hand: one handler, leased jobs, and what it reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from leasebook import Book
from leasebook.domain.job import Job
from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.worker.answers import Answer, Report
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.executor import Executor

from .ticking import due, leased, ticker

BEGIN = 20.0


def lease(database: MemoryDatabase, count: int = 1, timeout: float = 600) -> list[Job]:
    """Leased jobs of the name ``work``."""
    store = MemoryStore.on(database)
    due(store, count, timeout=timeout)
    return leased(ticker(store))


def executor(bell: Bell, handler: Callable[..., object]) -> Executor:
    """An executor on the running loop, with one handler for ``work``."""
    book = Book()
    book.job(name="work")(handler)
    return Executor(asyncio.get_running_loop(), bell, book.jobs, BEGIN)


def by_turns(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    """A task factory that lets a task wait for its turn, as every Python up to 3.11 does."""
    return asyncio.Task(coroutine, loop=loop, **options)


async def reports(bell: Bell, count: int) -> list[Report]:
    """Wait for so many reports."""
    found: list[Report] = []
    deadline = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += [each for each in bell.take()[0] if isinstance(each, Report)]
        await asyncio.sleep(0.005)
    return found


async def answers(bell: Bell, count: int = 1) -> list[Answer]:
    return [each.answer for each in await reports(bell, count)]
