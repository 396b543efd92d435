"""The small parts that the tick thread, the event loop and the handlers' threads meet at."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from threading import Barrier, Event, Thread, current_thread

import pytest

from leasebook import Run
from leasebook.domain.values import ReleaseReason
from leasebook.infra.memory import MemoryDatabase
from leasebook.infra.worker.answers import Broke, GaveBack, RanOver, Succeeded
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.threads import HandlerThreads
from tests.support.workers import eventually

from .executing import BEGIN, answers, executor, lease


def test_a_ring_is_never_lost_between_look_and_reset() -> None:
    """Each ring waits until the one before was heard, so one that is lost is waited for in vain."""
    bell, heard = Bell(), Event()

    def ring() -> None:
        for _ in range(2_000):
            heard.clear()
            bell.ring()
            assert heard.wait(30)

    thread = Thread(target=ring)
    thread.start()
    while thread.is_alive():
        bell.wait(0.01)
        if bell.take()[1]:
            heard.set()
    assert bell.take() == ([], False)


def test_threads_are_used_again_and_grow_as_needed() -> None:
    threads, both = HandlerThreads(), Barrier(3)

    def meet() -> None:
        both.wait(30)

    for _ in range(2):
        threads.submit(meet)
    meet()
    names: list[str] = []
    done = Event()

    def note() -> None:
        names.append(current_thread().name)
        done.set()

    for _ in range(5):
        done.clear()
        threads.submit(note)
        assert done.wait(30)
    assert set(names) <= {f"leasebook-handler-{n}" for n in (1, 2, 3)}
    threads.close()


def test_an_idle_thread_keeps_nothing_of_its_last_work() -> None:
    class Big:
        def work(self) -> None: ...

    threads, big = HandlerThreads(), Big()
    seen = weakref.ref(big)
    threads.submit(big.work)
    del big

    def collected() -> bool:
        gc.collect()
        return seen() is None

    eventually(collected, "the work is garbage")
    threads.close()


async def test_each_run_reports_once(database: MemoryDatabase) -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database, 10))
    assert sorted(str(each) for each in await answers(bell, 10)) == sorted(
        str(Succeeded(str(n))) for n in range(1, 11)
    )
    await asyncio.sleep(0.05)
    assert bell.take() == ([], False)
    assert one.live == 0


async def test_a_run_past_its_time_out_is_reported_at_once_and_its_result_later(
    database: MemoryDatabase,
) -> None:
    gate, runs = Event(), list[Run]()

    def work(run: Run, n: int) -> str:
        runs.append(run)
        gate.wait(30)
        return "late"

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database, timeout=0.1))
    assert await answers(bell) == [RanOver()]
    assert runs[0].lost
    assert one.live == 0
    gate.set()
    assert await answers(bell) == [Succeeded('"late"')]


async def test_a_coroutine_that_swallows_its_cancellation_is_kept_and_reported_late(
    database: MemoryDatabase,
) -> None:
    async def work(n: int) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            gc.collect()
        await asyncio.sleep(0.05)
        return "late"

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database, timeout=0.1))
    assert await answers(bell, 2) == [RanOver(), Succeeded('"late"')]


async def test_a_lost_run_that_is_cancelled_reports_nothing(database: MemoryDatabase) -> None:
    runs: list[Run] = []

    async def work(run: Run, n: int) -> None:
        runs.append(run)
        await asyncio.Event().wait()

    bell = Bell()
    one = executor(bell, work)
    jobs = lease(database)
    one.start(jobs)
    while not runs:
        await asyncio.sleep(0)
    one.forget(jobs)
    while one.live:
        await asyncio.sleep(0)
    await asyncio.sleep(0.02)
    assert runs[0].lost
    assert bell.take() == ([], False)


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_loop_that_stands_still_begins_nothing_and_what_waits_is_given_back(
    database: MemoryDatabase, is_async: bool
) -> None:
    ran: list[int] = []

    async def coroutine(n: int) -> None:
        ran.append(n)

    def function(n: int) -> None:
        ran.append(n)

    bell = Bell()
    one = executor(bell, coroutine if is_async else function)
    assert one.responsive(time.monotonic())
    one.start(lease(database, 3))
    # Nothing has been awaited since: this is a loop that a handler blocks.
    later = time.monotonic() + BEGIN
    assert one.responsive(time.monotonic())
    assert not one.responsive(later)
    assert one.not_begun(time.monotonic()) == ()
    back = one.not_begun(later)
    assert [each.answer for each in back] == [GaveBack(ReleaseReason.NEVER_STARTED)] * 3
    assert list(one.not_begun(later)) == []
    await asyncio.sleep(0.05)
    assert one.responsive(later)
    assert (ran, bell.take()) == ([], ([], False))


async def test_a_process_without_threads_gives_the_job_back(
    database: MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    def work(n: int) -> None: ...

    bell = Bell()
    one = executor(bell, work)
    monkeypatch.setattr(Thread, "start", refuse)
    one.start(lease(database))
    [answer] = await answers(bell)
    assert answer == GaveBack(ReleaseReason.NEVER_STARTED, 1.0)
    assert one.live == 0
    monkeypatch.undo()
    one.start(lease(MemoryDatabase(database.hub.tables.clock)))
    assert await answers(bell) == [Succeeded()]


async def test_an_error_that_cannot_be_described_still_ends_its_run(
    database: MemoryDatabase,
) -> None:
    class Text(str):
        __slots__ = ()

        def __bool__(self) -> bool:
            raise RuntimeError("no answer")

    class Odd(Exception):
        def __str__(self) -> str:
            return Text("odd")

    async def work(n: int) -> None:
        raise Odd

    bell = Bell()
    one = executor(bell, work)
    one.start(lease(database))
    assert await answers(bell) == [Broke("an error that cannot be described", 60.0)]
