"""The heartbeat child of a worker is forked before the application is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leasebook.infra.worker.heart_fork import NAME, fork
from tests.support.workers import WorkerProcess, eventually, running
from tests.support.yard import Yard
from tests.worker import app

pytestmark = pytest.mark.fault
SLOW = "tests.worker.import_app:book"


def children_of(pid: int) -> dict[str, int]:
    """The processes that this one has made, by the names that they show."""
    made = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return {Path(f"/proc/{each}/comm").read_text("utf-8").strip(): int(each) for each in made}


@contextmanager
def importing(yard: Yard) -> Generator[tuple[WorkerProcess, int]]:
    """A worker in the middle of its import, and the process that the application has forked."""
    worker = yard.start(app=SLOW)
    told = yard.folder / "forked"
    eventually(lambda: told.exists() and told.read_text(), "it imports the application")
    other = int(told.read_text())
    try:
        yield worker, other
    finally:
        os.kill(other, signal.SIGKILL)


def test_it_is_there_before_the_application_and_serves_it(yard: Yard) -> None:
    """Neither threads nor processes of the application are in its way."""
    with importing(yard) as (worker, _):
        heart = children_of(worker.pid)[NAME]
        yard.open("import")
        worker.tells("worker started")
        assert worker.heart == heart
        with yard.caller() as caller:
            receipt = app.quick.enqueue(caller)
        assert yard.over(receipt).outcome == "done"
        yard.beating(worker)
        assert worker.stop() == 0
        assert not running(heart)


def test_it_goes_with_a_worker_that_dies_before_it_began(yard: Yard) -> None:
    """A process that the application forked still holds the pipe open."""
    with importing(yard) as (worker, other):
        heart = children_of(worker.pid)[NAME]
        os.kill(worker.pid, signal.SIGKILL)
        worker.process.wait()
        eventually(lambda: not running(heart), "the heartbeat child has ended")
        assert running(other)


def test_it_holds_nothing_open_but_its_pipe_and_what_it_tells(yard: Yard) -> None:
    with importing(yard) as (worker, _):
        heart = children_of(worker.pid)[NAME]
        opened = sorted(map(int, os.listdir(f"/proc/{heart}/fd")))
        assert opened[:3] == [0, 1, 2]
        assert os.readlink(f"/proc/{heart}/fd/0").startswith("pipe:")
        assert all("pipe" not in os.readlink(f"/proc/{heart}/fd/{each}") for each in opened[3:])
        assert os.getsid(heart) == heart


def test_an_application_that_cannot_be_imported_leaves_no_child(yard: Yard) -> None:
    yard.may_alarm = True  # The command says what is wrong.
    worker = yard.start(app="tests.worker.there_is_none:book")
    assert worker.ended() != 0
    ours = f"LEASEBOOK_TEST_FOLDER={yard.folder}".encode()
    eventually(lambda: not [pid for pid in hearts() if ours in environment_of(pid)], "it has ended")


def hearts() -> list[int]:
    """All heartbeat children of this machine that were forked."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/comm"):
        try:
            if each.read_text("utf-8").strip() == NAME:
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_beside_threads_nothing_is_forked() -> None:
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    assert fork(lambda descriptor, parent: None) is None
    waiting.set()
    thread.join()


def test_a_child_is_looked_after_as_any() -> None:
    """In a process of its own: this one may have threads."""
    script = """
import subprocess, sys, time
from leasebook.infra.worker.heart_fork import fork
def reads(descriptor, parent):
    import os
    assert os.getppid() == parent
    if os.read(descriptor, 1) == b"x":
        raise SystemExit
child = fork(reads)
assert child.poll() is None
try:
    child.wait(timeout=0.05)
    raise AssertionError("it has not been told to end")
except subprocess.TimeoutExpired:
    pass
child.stdin.write("x")
child.stdin.flush()
assert child.wait(timeout=30) == 1
other = fork(reads)
other.kill()
other.kill()
assert other.wait(30) == -9
other.kill()
third = fork(reads)
third.stdin.close()
assert third.wait(30) == 0 == third.poll()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
