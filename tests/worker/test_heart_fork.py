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


def heart_of(worker: WorkerProcess) -> int:
    """The heartbeat child of a worker, once it shows its name."""

    def found() -> list[int]:
        made = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text("utf-8").split()
        return [each for each in map(int, made) if named(each) == NAME]

    return eventually(found, "its child is there")[0]


def named(pid: int) -> str:
    """What a process shows as its name, nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
    except OSError:
        return ""


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
        heart = heart_of(worker)
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
        heart = heart_of(worker)
        os.kill(worker.pid, signal.SIGKILL)
        worker.process.wait()
        eventually(lambda: not running(heart), "the heartbeat child has ended")
        assert running(other)


def test_it_holds_nothing_open_but_its_pipe_and_what_it_tells(yard: Yard) -> None:
    with importing(yard) as (worker, _):
        heart = heart_of(worker)
        opened = sorted(map(int, os.listdir(f"/proc/{heart}/fd")))
        assert opened[:3] == [0, 1, 2]
        assert os.readlink(f"/proc/{heart}/fd/0").startswith("pipe:")
        assert all("pipe" not in os.readlink(f"/proc/{heart}/fd/{each}") for each in opened[3:])
        assert os.getsid(heart) == heart


def test_it_goes_when_the_application_cannot_be_imported(yard: Yard) -> None:
    yard.may_alarm = True  # The command says what is wrong.
    with importing(yard) as (worker, _):
        heart = heart_of(worker)
        (yard.folder / "broken").touch()
        yard.open("import")
        assert worker.ended() != 0
        eventually(lambda: not running(heart), "it has ended")


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
import signal, subprocess
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
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ignored = fork(reads)
ignored.stdin.close()
assert ignored.wait(30) == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
