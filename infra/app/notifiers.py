"""All notifiers of a process: a child begins with none at work, and a program that ends rings.

A program that ends after its last commit rings for it before it is gone.  Children of
multiprocessing leave by ``os._exit``, and run finalizers of their own before that.  One that is
killed, or leaves that way by itself, leaves its last commit to polling.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from collections.abc import Iterable
from threading import Thread, current_thread
from typing import Protocol

#: Closing waits so long for what was committed last.
CLOSE_SECONDS = 0.5


class Member(Protocol):
    """A notifier, as its process sees it."""

    def end(self) -> Thread | None:
        """Begin to close; what there is to wait for."""
        ...

    def after_fork(self) -> None:
        """In a child: begin anew."""
        ...


_ALL: weakref.WeakSet[Member] = weakref.WeakSet()
#: The child of multiprocessing that runs ``close_all`` before it leaves.
_finalized: int | None = None


def enrol(notifier: Member) -> None:
    """Take care of one for as long as it lives."""
    _ALL.add(notifier)


def at_work() -> None:
    """A notifier of this process begins to work."""
    global _finalized
    # Who is a child of it has loaded it.
    if os.getpid() != _finalized and "multiprocessing.process" in sys.modules:
        from multiprocessing import parent_process
        from multiprocessing.util import Finalize

        if parent_process() is not None:
            _finalized = os.getpid()
            Finalize(None, close_all, exitpriority=0)


def close_all() -> None:
    """Let all ring for what has committed by now, in the time of one, and stop."""
    wait_for([each.end() for each in tuple(_ALL)], CLOSE_SECONDS)


def wait_for(threads: Iterable[Thread | None], seconds: float) -> None:
    """Wait for threads to end, at most so long for all of them."""
    until = time.monotonic() + seconds
    for thread in threads:
        if thread is not None and thread is not current_thread():
            thread.join(max(0.0, until - time.monotonic()))


def _after_fork() -> None:
    for each in tuple(_ALL):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
