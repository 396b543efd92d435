"""Many producers at one key: each a process, all begin together, all end after so many seconds."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import psycopg

Add = Callable[[psycopg.Connection[Any], int], object]
START_SECONDS_MAX = 60.0


def crowd(dsn: str, add: Add, producers: int, seconds: float, pause: float) -> float:
    """Items a second that they commit together.

    ``add`` adds one item on a connection without committing; then the transaction stays open for
    ``pause`` seconds.  Raises RuntimeError when a producer failed.
    """
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(producers)
    counts = context.Array("Q", producers)
    ended = context.Array("d", producers)
    processes = [
        context.Process(target=_produce, args=(dsn, add, seconds, pause, barrier, counts, ended, n))
        for n in range(producers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError("a producer failed; what it wrote stands above")
    return sum(counts) / max(ended)


def _produce(
    dsn: str,
    add: Add,
    seconds: float,
    pause: float,
    barrier: Barrier,
    counts: Any,
    ended: Any,
    number: int,
) -> None:
    with psycopg.connect(dsn) as connection:
        add(connection, number)
        connection.commit()
        barrier.wait(START_SECONDS_MAX)
        began = time.monotonic()
        done = 0
        while time.monotonic() - began < seconds:
            add(connection, done)
            if pause:
                time.sleep(pause)
            connection.commit()
            done += 1
        counts[number] = done
        ended[number] = time.monotonic() - began
