"""A process that enqueues and dies: committed is committed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from .ground import App

PROGRAM = """
import os, sys, threading
import psycopg
from leasebook import Book
book = Book(sys.argv[1])

@book.job
def work(number: int) -> None: ...

opened = psycopg.connect(sys.argv[1])
work.enqueue(opened, 0)
for number in range(1, 4):
    with psycopg.connect(sys.argv[1]) as connection:
        work.enqueue(connection, number)
print("committed", flush=True)
threading.Event().wait()
"""


@pytest.mark.fault
@pytest.mark.acceptance("Q04", "Q01")
def test_killing_the_enqueuing_process_after_commit_loses_nothing(app: App) -> None:
    command = [sys.executable, "-c", PROGRAM, app.dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    # Three were committed; the fourth was in an open transaction and left no trace.
    assert app.rows() == (3, 3, 0)
