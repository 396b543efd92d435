"""A heartbeat child that is forked, which costs nothing where its worker has no threads yet.

A program that is started has to import all that its worker has imported already: 0.2 s of a
processor, beside the first jobs.  A fork has it.  It would also have the locks that other threads
hold at that moment, so it is made before there are any, before the application is imported.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from attrs import define

#: What shows in ``ps`` and ``top``; fifteen bytes at most.
NAME = "leasebook-heart"
WAIT_SECONDS = 0.01
STANDARD = (0, 1, 2)


@define(eq=False)
class Forked:
    """A child, as ``subprocess.Popen`` shows one; only one thread at a time looks after it."""

    pid: int
    stdin: TextIO
    returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended, None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = 0  # The application has waited for it, or children are ignored.
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        """Wait for its end.  Raises TimeoutExpired."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(NAME, timeout)
            time.sleep(WAIT_SECONDS)
        return code

    def kill(self) -> None:
        """Kill it."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def fork(run: Callable[[int, int], None]) -> Forked | None:
    """A child that does ``run(its end of a pipe, the process id of its parent)`` and exits.

    None where no child can be forked: this process has threads, is not on Linux (on macOS system
    libraries do not outlive a fork), or may have no more processes.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return None
    parent = os.getpid()
    read, write = os.pipe()
    for each in filter(None, (sys.stdout, sys.stderr)):
        each.flush()  # or both would write what has not been written
    try:
        pid = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        return None
    if not pid:
        _live(run, read, parent)
    os.close(read)
    return Forked(pid, os.fdopen(write, "w"))


def _live(run: Callable[[int, int], None], read: int, parent: int) -> NoReturn:
    """Be the child: in a session of its own, with nothing open but the pipe and what it tells."""
    code = 1
    try:
        os.setsid()
        os.dup2(read, 0)
        _close_others()
        with suppress(OSError):
            Path("/proc/self/comm").write_text(NAME)
        run(0, parent)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # what the parent does at its exit is its own


def _close_others() -> None:
    """Close what a program that is started would not have."""
    for each in map(int, os.listdir("/proc/self/fd")):
        if each not in STANDARD:
            with suppress(OSError):  # the list itself was open
                os.close(each)
