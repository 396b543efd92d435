"""An application whose handlers compute, each in a process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass

from leasebook import Book, Group, Retry, Run, Snooze
from tests.worker.app import effect, wait_at

book = Book()
GREEDY = ctypes.PyDLL(None)


@dataclass(frozen=True)
class Matrix:
    rows: list[list[float]]


@book.job
async def quick(run: Run, n: int = 0) -> None:
    effect(run)


@book.job(executor="process")
def trace(run: Run, matrix: Matrix) -> dict[str, float]:
    effect(run)
    return {"trace": sum(row[place] for place, row in enumerate(matrix.rows))}


@book.job(executor="process", group=Group(window=0.1, max_hold=1))
def total(run: Run, items: list[int]) -> int:
    effect(run)
    return sum(items)


@book.job(executor="process", retry=Retry(2, delay=0.1), timeout=4.0)
def crunches(run: Run, how: str) -> str:
    """Does what it should not on its first start."""
    effect(run)
    if run.start > 1:
        return f"start {run.start}"
    match how:
        case "os._exit":
            os._exit(3)
        case "segmentation fault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "out of memory":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sys.exit":
            sys.exit(3)
        case "raises":
            raise ValueError("no use: token=abc123secret")
        case "snoozes":
            raise Snooze(0.1)
        case "holds the lock":
            GREEDY.sleep(3600)
        case "swallows":
            while True:
                try:
                    time.sleep(3600)  # tidy: this is what the test is about
                except BaseException:
                    continue
        case _:
            raise LookupError(how)
    return "never"


@book.job(executor="process", timeout=3600)
def waits(run: Run, gate: str) -> str:
    effect(run)
    try:
        wait_at(gate)
    finally:
        effect(run, "cleaned up")
    return "passed"
