"""A worker inside another program: it begins and ends with a block, and asks nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from leasebook import Book
from leasebook.domain.errors import InvalidValue
from leasebook.domain.events import Released
from leasebook.domain.values import ReleaseReason
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.worker.heart_process import Guard
from leasebook.infra.worker.hosted import HostedWorker
from leasebook.infra.worker.settings import WorkerSettings
from tests.support.source import TOP
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

HOST = """
import asyncio
from tests.worker.app import book

async def main():
    async with book.worker(poll=0.2, heartbeat=0.25, dead_after=1.0):
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def folder(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEBOOK_TEST_FOLDER", str(yard.folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")]))


def hosted(grace: float = 20.0, **options: Any) -> HostedWorker:
    paces: dict[str, Any] = {"grace": grace, "poll": 0.2, "heartbeat": 0.25, "dead_after": 1.0}
    return app.book.worker(**{**paces, **options})


async def until(ask: Callable[[], object]) -> None:
    """Wait in a thread, so that the loop turns on."""
    await asyncio.to_thread(eventually, ask, "what the test waits for")


@pytest.mark.parametrize("heartbeat_in", ["process", "thread"])
def test_jobs_run_in_this_process_and_are_drained_with_the_block(
    yard: Yard, heartbeat_in: str
) -> None:
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)]
    with yard.caller() as caller:
        running = [app.gated.enqueue(caller, "go"), app.gated_thread.enqueue(caller, "go")]

    async def main() -> None:
        async with hosted(concurrency=2, heartbeat_in=heartbeat_in) as worker:
            await until(lambda: len(yard.effects()) == 2)
            assert worker.running
            threading.Timer(0.3, yard.open, ("go",)).start()
        assert not worker.running

    asyncio.run(main())
    assert yard.all_over(running) == {"done": 2}
    assert {each.pid for each in yard.effects()} == {os.getpid()}
    assert yard.sql("select count(*) from leasebook.workers") == [(0,)]
    now = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)]
    assert now == handlers


@pytest.mark.acceptance("A13")
@pytest.mark.parametrize("how", ["the grace ends", "the wait is cancelled"])
def test_a13_what_does_not_finish_with_the_block_is_given_back(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "never")

    async def main() -> None:
        async with hosted(0.2 if how == "the grace ends" else 600.0):
            await until(lambda: yard.effects())

    async def cancelled() -> None:
        task = asyncio.create_task(main())
        await until(lambda: yard.effects())
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.2)

    asyncio.run(main() if how == "the grace ends" else cancelled())
    released = yard.events(receipt)[-1]
    assert isinstance(released, Released)
    assert (released.reason, yard.job(receipt).attempts) == (ReleaseReason.SHUTDOWN, 0)


@pytest.mark.fault
def test_a_host_that_is_killed_is_noticed_at_once(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    host = subprocess.Popen([sys.executable, "-c", HOST], cwd=TOP)
    try:
        yard.began(receipt)
    finally:
        host.kill()
        host.wait()
    eventually(lambda: yard.kinds(receipt)[-1] == "lease_expired", "its lease is ended")


@pytest.mark.fault
@pytest.mark.acceptance("A11")
def test_a11_a_handler_that_blocks_the_host_loses_its_lease_in_time(yard: Yard) -> None:
    """Nobody interrupts a program that is not ours: the loop is free when the handler ends."""
    with yard.caller() as caller:
        receipt = app.blocks_the_loop.enqueue(caller, "go")

    def free() -> None:
        yard.over(receipt)
        yard.open("go")

    async def main() -> None:
        async with hosted():
            freeing = threading.Thread(target=free)
            freeing.start()
            await until(lambda: not freeing.is_alive())
        with yard.caller() as caller:
            app.quick.enqueue(caller, 1)

    asyncio.run(main())
    assert yard.job(receipt).outcome == "lost"


@pytest.mark.parametrize(
    ("kill", "silence", "sent"),
    [
        (True, 0.0, [signal.SIGURG]),
        (True, 9.0, [signal.SIGKILL]),
        (False, 9.0, []),
    ],
)
def test_only_a_worker_of_its_own_is_interrupted_or_killed(
    monkeypatch: pytest.MonkeyPatch, kill: bool, silence: float, sent: list[int]
) -> None:
    heart: Any = SimpleNamespace(
        overran=True, settings=WorkerSettings(dead_after=5.0), worker="w", signs_of_life=bool
    )
    signals: list[int] = []

    def kill_instead(pid: int, number: int) -> None:
        signals.append(number)

    monkeypatch.setattr(os, "kill", kill_instead)
    guard = Guard(heart, os.getppid(), kill=kill, heard_at=time.monotonic() - silence)
    guard.look()
    assert signals == sent
    guard.heard()
    heart.overran = False
    guard.look()
    assert signals == sent


def test_a_worker_that_cannot_start_says_so(yard: Yard) -> None:
    async def main() -> None:
        async with Book("postgresql://127.0.0.1:1/none").worker():
            raise AssertionError("it started")

    with pytest.raises(StoreUnavailable):
        asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"grace": -1.0},
        {"poll": float("nan")},
        {"heartbeat": 10.0, "dead_after": 20.0},
        {"heartbeat_in": "cellar"},
        {"concurency": 3},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        app.book.worker(**options)
