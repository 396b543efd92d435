"""Ringing after commit, without a NOTIFY in anybody's transaction.

A transaction that notifies takes a lock of the whole server at its commit, so an enqueue only
leaves its transaction's id here.  A thread asks the server, on a connection of its own, how the
pending transactions ended: thrice within a millisecond, then rarer, at last once a second.  It
rings as soon as one has committed, and then not again for 5 ms: of a burst the first is told at
once, and the others with one ring for many.  A ring is a courtesy: when the server cannot be asked
the ids are forgotten, and the workers' polling finds the jobs.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from .logs import Logger

log = Logger("leasebook.notifier")

#: Most commits come within two milliseconds of their enqueue.
FIRST_WAITS_SECONDS = (0.0003, 0.0003, 0.0003, 0.0005, 0.001, 0.002, 0.005, 0.01)
WAIT_SECONDS_MAX = 1.0
#: A transaction that enqueues time after time is asked about from this wait on.
AGAIN = FIRST_WAITS_SECONDS.index(0.002)
#: A busy producer rings no more often than so: its workers are awake anyway.
QUIET_SECONDS = 0.005
#: After an error the server is left alone for so long.
PAUSE_SECONDS = 1.0
#: More open transactions than this are not watched; the oldest are forgotten first.
PENDING_MAX = 10_000
NEVER = float("inf")


class Commits(Protocol):
    """What the notifier asks of the database, on a connection of its own."""

    def ring_for(self, xids: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Wake the workers if one of these transactions has committed.

        Which of them committed, and which can be forgotten otherwise?
        """
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class Notifier:
    """Watches transactions and rings when one has committed.  Its thread starts at first need."""

    def __init__(self, connect: Callable[[], Commits]) -> None:
        self._connect = connect
        self._start_anew()
        _ALL.add(self)

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[int, None] = {}
        self._thread: threading.Thread | None = None
        self._step = 0
        self._closing = False
        self._ask_at = self._asleep_until = NEVER
        self._paused_until = self._quiet_until = 0.0

    def watch(self, xids: Iterable[int]) -> None:
        """Ring when one of these transactions commits.  Returns at once and raises nothing."""
        with self._changed:
            now = time.monotonic()
            if self._closing or now < self._paused_until:
                return
            new = [xid for xid in xids if xid not in self._pending]
            self._pending.update(dict.fromkeys(new))
            while len(self._pending) > PENDING_MAX:
                del self._pending[next(iter(self._pending))]
            self._step = 0 if new else min(self._step, AGAIN)
            # It hastens the next question and never puts it off.
            wait = FIRST_WAITS_SECONDS[self._step]
            self._ask_at = min(self._ask_at, max(now + wait, self._quiet_until))
            if self._thread is None:
                self._start()
            elif self._ask_at < self._asleep_until:
                # Most often the thread will be up in time, and waking it costs the caller.
                self._changed.notify_all()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="leasebook-notifier", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # The interpreter is ending; polling finds the job.
            self._thread = None
            self._pending.clear()

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
            while not (self._closing or self._ask_at <= (now := time.monotonic())):
                self._asleep_until = self._ask_at
                self._changed.wait(None if self._ask_at == NEVER else self._ask_at - now)
            # From here to the next sleep nobody needs to wake it.
            self._asleep_until, self._ask_at = 0.0, NEVER
            if self._closing and not self._pending:
                self._thread = None
                return None
            return list(self._pending)

    def _ask(self, commits: Commits, xids: Sequence[int]) -> None:
        committed, forgotten = commits.ring_for(xids)
        with self._changed:
            for xid in (*committed, *forgotten):
                self._pending.pop(xid, None)
            if self._closing:
                self._pending.clear()
            now = time.monotonic()
            if committed:
                self._quiet_until = now + QUIET_SECONDS
            if self._pending:
                wait = self._patience()
                self._ask_at = max(min(self._ask_at, now + wait), self._quiet_until)

    def _patience(self) -> float:
        self._step += 1
        if self._step < len(FIRST_WAITS_SECONDS):
            return FIRST_WAITS_SECONDS[self._step]
        doublings = min(self._step - len(FIRST_WAITS_SECONDS) + 1, 16)
        return min(WAIT_SECONDS_MAX, FIRST_WAITS_SECONDS[-1] * 2.0**doublings)

    def _give_up(self) -> None:
        with self._changed:
            self._pending.clear()
            self._ask_at = self._asleep_until = NEVER
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
