"""Where Python can, a handler begins as soon as its loop has the job."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from leasebook.domain.values import Json
from leasebook.infra.memory import MemoryDatabase
from leasebook.infra.worker.answers import NEVER_STARTED, Report, Succeeded
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.executions import EAGER

from .executing import BEGIN, answers, by_turns, executor, lease


async def test_it_takes_no_turn_of_the_loop(database: MemoryDatabase) -> None:
    order: list[str] = []
    first_wait = asyncio.Event()

    async def work(n: int) -> None:
        order.append("handler")
        await first_wait.wait()
        order.append("handler again")

    bell = Bell()
    executor(bell, work).start(lease(database))
    asyncio.get_running_loop().call_soon(lambda: order.append("others"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert order == (["handler", "others"] if EAGER else ["others", "handler"])
    first_wait.set()
    assert [type(each) for each in await answers(bell)] == [Succeeded]
    assert order[2:] == ["handler again"]


async def test_who_blocks_the_loop_at_once_keeps_nobody_for_long(database: MemoryDatabase) -> None:
    """The jobs behind it are still on their way, and are given back from outside."""
    loop = asyncio.get_running_loop()
    blocked, free = threading.Event(), threading.Event()

    async def work(n: int) -> None:
        blocked.set()
        free.wait(30)

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database, 3))

    def give_back() -> list[Report]:
        assert blocked.wait(30)
        assert not one.responsive(time.monotonic() + BEGIN) or not EAGER
        back = one.not_begun(time.monotonic() + BEGIN)
        free.set()
        return list(back)

    back = await loop.run_in_executor(None, give_back)
    assert [each.answer for each in back] == ([NEVER_STARTED] * 2 if EAGER else [])
    done = await answers(bell, 3 - len(back))
    assert {type(each) for each in done} == {Succeeded}


async def test_the_task_factory_of_an_application_is_asked(database: MemoryDatabase) -> None:
    loop = asyncio.get_running_loop()
    made: list[str] = []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        made.append(coroutine.__qualname__)
        return by_turns(loop, coroutine, **options)

    async def work(n: int) -> Json:
        return "done"

    loop.set_task_factory(factory)
    bell = Bell()
    executor(bell, work).start(lease(database))
    assert [type(each) for each in await answers(bell)] == [Succeeded]
    assert "Executor._coroutine" in made
