"""An application whose handlers get stuck, in every way that Python knows."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import time

from leasebook import Book, Retry, Run
from tests.worker.app import effect, passed, wait_at

book = Book()
LEASE_SECONDS = 2
#: Foreign code that is called without letting go of Python's global lock.
GREEDY = ctypes.PyDLL(None)


@book.job
async def quick(run: Run, n: int = 0) -> None:
    effect(run)


def sleep_forever() -> None:
    time.sleep(3600)  # tidy: this is what the test is about


def get_stuck(how: str) -> None:
    """Block the calling thread for ever."""
    match how:
        case "sleep":
            sleep_forever()
        case "swallow":
            while True:
                try:
                    sleep_forever()
                except Exception:
                    continue
        case "busy":
            while True:
                pass
        case "regular expression":
            re.match(r"(a+)+$", "a" * 60 + "b")
        case _:
            GREEDY.sleep(3600)


@book.job(retry=Retry(2, delay=0.1), timeout=1.5)
async def blocks(run: Run, how: str) -> str:
    """Gets stuck on its first start."""
    effect(run)
    if run.start == 1:
        get_stuck(how)
    return f"start {run.start}"


@book.job(retry=Retry(2, delay=0.1), timeout=1.5)
def blocks_thread(run: Run, how: str) -> str:
    effect(run)
    if run.start == 1:
        get_stuck(how)
    return f"start {run.start}"


@book.job(retry=Retry(2, delay=0.1), timeout=1.5)
async def hangs(run: Run, how: str) -> str:
    effect(run)
    while run.start == 1:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if how != "swallows its cancellation":
                raise
    return f"start {run.start}"


@book.job(retry=Retry(0), timeout=60, lease=LEASE_SECONDS)
async def long_blocks(run: Run, how: str) -> str:
    """Three times its lease, alive and well, and nobody else of this process can tell."""
    effect(run)
    if how == "blocks the loop":
        wait_at("go")
    elif how == "holds the lock":
        GREEDY.sleep(3 * LEASE_SECONDS)
    else:
        await passed("go")
    return str(os.getpid())
