"""A lease is not yet a run: what never began is given back as such, whatever its type."""

from __future__ import annotations

import asyncio
import time

import pytest

from leasebook.domain.values import ReleaseReason
from leasebook.infra.memory import MemoryDatabase
from leasebook.infra.worker.answers import NEVER_STARTED, Broke, GaveBack
from leasebook.infra.worker.bell import Bell

from .executing import BEGIN, answers, by_turns, executor, lease


async def test_what_a_stop_finds_not_begun_is_given_back_as_never_started(
    database: MemoryDatabase,
) -> None:
    """A job of a type that aborts may then run once more: it has not run at all."""
    asyncio.get_running_loop().set_task_factory(by_turns)
    ran: list[int] = []

    async def work(n: int) -> None:
        ran.append(n)

    bell = Bell()
    one = executor(bell, work)
    jobs = lease(database, 2)
    one.start(jobs[:1])
    await asyncio.sleep(0)  # Its task is there, and has had no turn.
    assert one.live == 1
    one.interrupt()
    one.start(jobs[1:])
    assert await answers(bell, 2) == [NEVER_STARTED] * 2
    assert (ran, one.live) == ([], 0)


async def test_a_run_that_a_blocked_loop_kept_from_beginning_has_not_run_over(
    database: MemoryDatabase,
) -> None:
    asyncio.get_running_loop().set_task_factory(by_turns)
    ran: list[int] = []

    async def work(n: int) -> None:
        ran.append(n)

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database, timeout=0.1))
    await asyncio.sleep(0)
    assert one.live == 1
    [back] = one.not_begun(time.monotonic() + BEGIN)
    assert back.answer == NEVER_STARTED
    await asyncio.sleep(0.02)
    assert (ran, bell.take()) == ([], ([], False))


@pytest.mark.parametrize("error", [ValueError, ConnectionError])
async def test_what_breaks_after_a_stop_has_interrupted_it_says_so(
    database: MemoryDatabase, error: type[Exception]
) -> None:
    """Also when it looks like somebody else's outage."""
    begun = asyncio.Event()

    async def work(n: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise error("gone")

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database))
    await begun.wait()
    one.interrupt()
    [answer] = await answers(bell)
    match answer:
        case Broke():
            assert answer.interrupted
        case GaveBack():
            assert answer.reason is ReleaseReason.SHUTDOWN
        case _:
            pytest.fail(f"{answer}")
