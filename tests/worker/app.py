"""The application that the tests' workers run: handlers good and bad.

A handler that begins writes an effect through a connection of its own, so that runs can be counted
whatever the queue says.  A gate is a file that the test makes when the handler may go on.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from threading import Event
from typing import Any

import psycopg

from leasebook import Book, Fail, Group, RateLimited, Retry, RetryIn, Run, Snooze

book = Book()

GATE_POLL_SECONDS = 0.01
INSERT = "insert into effects (job_id, start, pid, note) values (%s, %s, %s, %s)"


def effect(run: Run, note: str = "") -> None:
    """Write that this run began."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"], autocommit=True) as connection:
        connection.execute(INSERT, (run.job_id, run.start, os.getpid(), note))


def is_open(gate: str) -> bool:
    return Path(os.environ["LEASEBOOK_TEST_FOLDER"], gate).exists()


async def passed(gate: str) -> None:
    """Wait until the gate is open."""
    while not is_open(gate):
        await asyncio.sleep(GATE_POLL_SECONDS)


def wait_at(gate: str) -> None:
    """Wait in a thread until the gate is open."""
    pause = Event()
    while not is_open(gate):
        pause.wait(GATE_POLL_SECONDS)


@book.job
async def quick(run: Run, n: int = 0) -> int:
    effect(run)
    return n


@book.job
async def gated(run: Run, gate: str) -> str:
    effect(run)
    await passed(gate)
    return "passed"


@book.job
def gated_thread(run: Run, gate: str) -> str:
    effect(run)
    wait_at(gate)
    return "passed"


@book.job(retry=Retry(1, delay=60), lease=1.2)
async def short_lease(run: Run, gate: str) -> str:
    effect(run)
    await passed(gate)
    return f"start {run.start}"


@book.job(retry=Retry(0), lease=1.2)
async def only_once(run: Run, gate: str) -> str:
    effect(run)
    await passed(gate)
    return f"start {run.start}"


@book.job(retry=Retry(2, delay=0.3))
async def failing(run: Run, text: str) -> None:
    effect(run)
    raise ValueError(text)


@book.job(retry=Retry(delays=(0.2, 0.5)))
def listed(run: Run) -> None:
    effect(run)
    raise ValueError("listed")


@book.job(retry=Retry(4, delay=0.1, factor=3, cap=0.5, jitter=0.2))
async def growing(run: Run) -> None:
    effect(run)
    raise ValueError("growing")


@book.job(retry=Retry(2, delay=60))
async def deadly(run: Run) -> None:
    effect(run)
    os._exit(137)


@book.job(retry=Retry(1, delay=60))
def deadly_thread(run: Run) -> None:
    effect(run)
    os._exit(137)


@book.job(retry=Retry(1, delay=60))
async def innocent(run: Run) -> None:
    await asyncio.sleep(0.03)


@book.job(retry=Retry(1, delay=60))
def innocent_thread(run: Run) -> None:
    Event().wait(0.03)


@book.job(group=Group(window=3, max_hold=20), retry=Retry(1))
async def bulk(run: Run, items: list[int]) -> int:
    effect(run, str(len(items)))
    return len(items)


@book.job(group=Group(window=600, max_hold=600))
async def patient(run: Run, items: list[int]) -> None:
    effect(run, str(len(items)))


@book.job(group=Group(window=0.2, max_hold=1))
async def stream(run: Run, items: list[int]) -> int:
    effect(run, ",".join(map(str, items)))
    return len(items)


@book.job(group=Group(window=0.2, max_hold=5))
async def gated_group(run: Run, items: list[int]) -> int:
    effect(run, ",".join(map(str, items)))
    await passed("group")
    return len(items)


@book.job(retry=Retry(1, delay=0.1), timeout=0.6)
async def hung(run: Run, how: str) -> str:
    effect(run)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if how == "polite":
                raise
            if how == "late":
                return "late"


@book.job(retry=Retry(1, delay=0.1), timeout=0.6)
def hung_thread(run: Run, gate: str) -> str:
    effect(run)
    wait_at(gate)
    return "late"


@book.job(retry=Retry(0), timeout=0.6, lease=1)
async def blocks_the_loop(run: Run, gate: str) -> None:
    effect(run)
    wait_at(gate)


@book.job(retry=Retry(1, delay=0.1))
async def says(run: Run, how: str) -> None:
    effect(run)
    match how:
        case "snooze" if run.start == 1:
            raise Snooze(0.2)
        case "rate limited" if run.start == 1:
            raise RateLimited(0.2)
        case "retry in" if run.start == 1:
            raise RetryIn(0.4)
        case "fail":
            raise Fail("no use: token=abc123secret")
        case "fail, retry":
            raise Fail("perhaps later", retry=True)
        case _:
            pass


class Sullen(Exception):
    """Cannot be shown in any way."""

    def __str__(self) -> str:
        raise RuntimeError("no str")

    __repr__ = __str__


class Liar(Exception):
    """Its text is no honest text."""

    class Text(str):
        __slots__ = ()

        def __bool__(self) -> bool:
            raise RuntimeError("no answer")

        def __len__(self) -> int:
            raise RuntimeError("no length")

    def __str__(self) -> str:
        return Liar.Text("lie")

    __repr__ = __str__


class Empty:
    """Has no JSON form."""

    __slots__ = ()


def misbehave(how: str) -> Any:
    """Everything that a handler should not do."""
    match how:
        case "object":
            return Empty()
        case "nan":
            return float("nan")
        case "nul":
            return "a\0b"
        case "surrogate":
            return "\ud800"
        case "huge":
            return "x" * 20_000_000
        case "huge int":
            return 2**70
        case "long error":
            raise ValueError("password=hunter2 " + "x" * 5_000_000)
        case "sullen":
            raise Sullen
        case "surrogate error":
            raise ValueError("lone \ud800 and nul \0")
        case "bytes error":
            raise ValueError(b"\xff\xfe")
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "generator exit":
            raise GeneratorExit
        case "cancelled":
            raise asyncio.CancelledError
        case "stop iteration":
            raise StopIteration
        case "recursion":
            return misbehave(how)
        case "liar":
            raise Liar
        case _:
            raise LookupError(how)


@book.job(retry=Retry(2, delay=0.05))
async def bad(run: Run, how: str) -> Any:
    effect(run)
    return misbehave(how)


@book.job(retry=Retry(2, delay=0.05))
def bad_thread(run: Run, how: str) -> Any:
    effect(run)
    return misbehave(how)


@book.job
async def forks(run: Run, gate: str) -> None:
    child = os.fork()
    if child == 0:
        wait_at(gate)
        os._exit(0)
    effect(run, str(child))
    await passed(gate)


@book.job(retry=Retry(2, delay=60), lease=2)
async def slow_start(run: Run) -> str:
    """Waits at the gate that bears the number of its start."""
    effect(run)
    await passed(str(run.start))
    return f"start {run.start}"


@book.job(retry=Retry(2, delay=60), lease=2)
def slow_start_thread(run: Run) -> str:
    effect(run)
    wait_at(str(run.start))
    return f"start {run.start}"


@book.job(timeout=60)
def watches_its_lease(run: Run) -> None:
    effect(run)
    pause = Event()
    while not (run.lost or run.stopping):
        pause.wait(GATE_POLL_SECONDS)
    effect(run, "lost" if run.lost else "stopping")


@book.job(retry=Retry(3, delay=60), timeout=3600)
async def blocks_the_loop_long(run: Run, gate: str) -> None:
    effect(run)
    wait_at(gate)


@book.job(retry=Retry(1, delay=0.1))
async def strict(run: Run, n: int) -> None:
    effect(run)


@book.job(group=Group(window=0.1, max_hold=1), retry=Retry(1, delay=0.1))
async def strict_group(run: Run, items: list[int]) -> None:
    effect(run, "never")


@book.job(retry=Retry(3, delay=60), lease=2)
async def brief(n: int) -> None:
    """Nothing that a crash of the server could disturb."""


@book.job
async def hides_in_a_thread(run: Run, gate: str) -> None:
    """Python waits for this thread at its exit, and nobody can end it."""
    effect(run)
    await asyncio.to_thread(wait_at, gate)


@book.job(timeout=3600)
async def cleans_up(run: Run, gate: str) -> None:
    """Takes its time to clean up when it is cancelled."""
    effect(run)
    try:
        await asyncio.sleep(3600)
    finally:
        await passed(gate)
        effect(run, "cleaned up")


@book.job(timeout=3600)
async def hung_long(run: Run) -> None:
    """Swallows every cancellation."""
    effect(run)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
