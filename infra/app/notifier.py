"""Ringing after commit, without a NOTIFY in anybody's transaction.

A transaction that notifies takes a lock of the whole server at its commit, so an enqueue only
leaves its transaction's id here.  A thread asks the server, on a connection of its own, how the
pending transactions ended: after 1, 2, 5 and 10 ms, then at twice the time before, at most 1 s.
It rings once for all that committed within a millisecond.  A ring is a courtesy: when the server
cannot be asked the ids are forgotten, and the workers' polling finds the jobs.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from .logs import get_logger

log = get_logger("leasebook.notifier")

FIRST_WAITS_SECONDS = (0.001, 0.002, 0.005, 0.01)
WAIT_SECONDS_MAX = 1.0
DEBOUNCE_SECONDS = 0.001
#: A busy producer rings no more often than so: its workers are awake anyway.
QUIET_SECONDS = 0.005
#: After an error the server is left alone for so long.
PAUSE_SECONDS = 1.0
#: More open transactions than this are not watched; the oldest are forgotten first.
PENDING_MAX = 10_000


class Commits(Protocol):
    """What the notifier asks of the database, on a connection of its own."""

    def ended(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Which of these transactions committed, and which can be forgotten otherwise."""
        ...

    def ring(self) -> None:
        """Wake the workers."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class Notifier:
    """Watches transactions and rings when one has committed.  Its thread starts at first need."""

    def __init__(self, connect: Callable[[], Commits]) -> None:
        self._connect = connect
        self._changed = threading.Condition()
        self._pending: dict[int, None] = {}
        self._thread: threading.Thread | None = None
        self._step = 0
        self._fresh = False
        self._closing = False
        self._paused_until = 0.0
        self._quiet_until = 0.0
        _ALL.add(self)

    def watch(self, xids: Iterable[int]) -> None:
        """Ring when one of these transactions commits.  Returns at once and raises nothing."""
        with self._changed:
            if self._closing or time.monotonic() < self._paused_until:
                return
            self._pending.update(dict.fromkeys(xids))
            while len(self._pending) > PENDING_MAX:
                del self._pending[next(iter(self._pending))]
            self._step = 0
            self._fresh = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="leasebook-notifier", daemon=True
                )
                try:
                    self._thread.start()
                except RuntimeError:
                    # The interpreter is ending; polling finds the job.
                    self._thread = None
                    self._pending.clear()
            self._changed.notify_all()

    @property
    def pending(self) -> int:
        """How many transactions are watched."""
        with self._changed:
            return len(self._pending)

    def close(self, seconds: float = 0.5) -> None:
        """Ring for what has committed by now, waiting at most so long, and stop."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def after_fork(self) -> None:
        """In a child: the thread is gone and the connection is the parent's, so begin anew."""
        self._start_anew()

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        self._pending = {}
        self._thread = None
        self._step = 0
        self._fresh = False
        self._closing = False
        self._paused_until = 0.0
        self._quiet_until = 0.0

    def _serve(self) -> None:
        commits: Commits | None = None
        try:
            while (xids := self._next()) is not None:
                if commits is None:
                    commits = self._connect()
                self._ask(commits, xids)
        except Exception as error:
            # Nobody waits for this thread, and what it does is done by polling too.
            log.debug("gave up ringing for a while", error=type(error).__name__)
            self._give_up()
        finally:
            if commits is not None:
                self._close(commits)

    def _next(self) -> list[int] | None:
        """The ids to ask about, when it is time to; None when this thread should end."""
        with self._changed:
            while not self._pending:
                if self._closing:
                    self._thread = None
                    return None
                self._changed.wait()
            wake_at = float("inf")
            self._fresh = True
            while not self._closing:
                now = time.monotonic()
                if self._fresh:
                    # A new transaction hastens the next question and never puts it off.
                    self._fresh = False
                    wake_at = max(self._quiet_until, min(wake_at, now + self._patience()))
                if wake_at <= now:
                    break
                self._changed.wait(wake_at - now)
            return list(self._pending)

    def _patience(self) -> float:
        step, self._step = self._step, self._step + 1
        if step < len(FIRST_WAITS_SECONDS):
            return FIRST_WAITS_SECONDS[step]
        doublings = min(step - len(FIRST_WAITS_SECONDS) + 1, 16)
        return min(WAIT_SECONDS_MAX, FIRST_WAITS_SECONDS[-1] * 2.0**doublings)

    def _ask(self, commits: Commits, xids: Sequence[int]) -> None:
        committed = self._settle(commits, xids)
        if committed and not self._closing:
            # Trailing edge: others that commit now are told of by the same ring.
            until = time.monotonic() + DEBOUNCE_SECONDS
            with self._changed:
                self._changed.wait_for(lambda: self._closing, max(0.0, until - time.monotonic()))
                rest = list(self._pending)
            if rest:
                self._settle(commits, rest)
        if committed:
            commits.ring()
            self._quiet_until = time.monotonic() + QUIET_SECONDS
        with self._changed:
            if self._closing:
                self._pending.clear()

    def _settle(self, commits: Commits, xids: Sequence[int]) -> bool:
        committed, forgotten = commits.ended(xids)
        with self._changed:
            for xid in (*committed, *forgotten):
                self._pending.pop(xid, None)
        return bool(committed)

    def _give_up(self) -> None:
        with self._changed:
            self._pending.clear()
            self._thread = None
            self._paused_until = time.monotonic() + PAUSE_SECONDS

    def _close(self, commits: Commits) -> None:
        try:
            commits.close()
        except Exception as error:
            log.debug("could not close", error=type(error).__name__)


_ALL: weakref.WeakSet[Notifier] = weakref.WeakSet()


def _after_fork() -> None:
    for notifier in tuple(_ALL):
        notifier.after_fork()


os.register_at_fork(after_in_child=_after_fork)
