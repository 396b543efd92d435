"""Ringing after commit, without a NOTIFY in anybody's transaction.

A transaction that notifies takes a lock of the whole server at its commit, so an enqueue only
leaves its transaction's id here, and the connection that it is open on.  A thread looks at those
connections: each knows by itself, without a question to the server, whether its transaction is
over, and it surely is when the connection enqueues in another one.  Then the thread asks the server
how it ended, on a connection of its own, and rings if it has committed.  A connection that goes on
with other work shows nothing, nor does one that cannot be looked at, so what is pending for 16 ms
is asked about as well, then rarer and rarer.

After a ring there is quiet for 5 ms: of a burst the first is told at once, and the others with one
ring for many.  Where commits follow ring upon ring, and where the server is slow to answer, the
quiet is ten times as long as the question took.  A program that ends rings for what it committed
last.  A ring is a courtesy: when the server cannot be asked the ids are forgotten, and the workers'
polling finds the jobs.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .logs import Logger
from .notifiers import CLOSE_SECONDS, at_work, enrol, wait_for

log = Logger("leasebook.notifier")

#: Most commits come within two milliseconds of their enqueue.
LOOKS_SECONDS = (0.0003, 0.0003, 0.0005, 0.001, 0.002, 0.004, 0.008)
LOOK_SECONDS_MAX = 1.0
#: A transaction that enqueues time after time is looked at from this wait on.
AGAIN = LOOKS_SECONDS.index(0.002)
#: When the server is asked about what shows no end, and how rarely at last.
ASK_SECONDS, ASK_SECONDS_MAX = 0.016, 1.0
#: A busy producer rings no more often than so: its workers are awake anyway.
QUIET_SECONDS = 0.005
#: Where it rings time after time, or asking takes longer than so, the quiet takes long too: the
#: notifier is to be a small part of the load.
SLOW_SECONDS = 0.001
QUIET_SHARE, QUIET_SECONDS_MAX = 10.0, 0.05
#: After an error the server is left alone for so long.
PAUSE_SECONDS = 1.0
#: More transactions of a kind than this are not watched; the oldest are forgotten first.
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


class Lines(Protocol):
    """What is known of callers and their connections without asking the database."""

    def line_of(self, caller: Any, /) -> object:
        """The driver's own connection of a caller that is in a transaction."""
        ...

    def is_over(self, line: Any, /) -> bool:
        """Whether no transaction is open on such a connection; any thread may ask."""
        ...


class Notifier:
    """Watches transactions and rings when one has committed.  Its thread starts at first need."""

    def __init__(self, connect: Callable[[], Commits], lines: Lines) -> None:
        self._connect = connect
        self._lines = lines
        self._start_anew()
        enrol(self)

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        #: Of each connection the transaction that it has enqueued in last.
        self._open: dict[weakref.ref[object], int] = {}
        #: How these have ended is not known yet.
        self._over: dict[int, None] = {}
        #: Of these nothing is seen here.
        self._unseen: dict[int, None] = {}
        self._thread: threading.Thread | None = None
        self._step = self._asks = 0
        self._closing = False
        self._look_at = self._ask_at = self._asleep_until = NEVER
        self._paused_until = self._quiet_until = 0.0

    def watch(self, xid: int, caller: object, *, committed: bool = False) -> None:
        """Ring when this transaction of ``caller`` commits, which it may have done by now.

        Returns at once and raises nothing.
        """
        line = None if committed else self._line_of(caller)
        with self._changed:
            now = time.monotonic()
            if self._closing or now < self._paused_until:
                return
            if committed:
                self._over[xid] = None
                self._bound()
            elif self._is_new(xid, line):
                self._step = self._asks = 0
                self._ask_at = min(self._ask_at, now + ASK_SECONDS)
            else:
                self._step = min(self._step, AGAIN)
            # It hastens the next look and never puts it off.
            wait = 0.0 if self._over else LOOKS_SECONDS[self._step]
            self._look_at = min(self._look_at, max(now + wait, self._quiet_until))
            if self._thread is None:
                self._start()
            elif self._look_at < self._asleep_until:
                # Most often the thread will be up in time, and waking it costs the caller.
                self._changed.notify_all()

    def _line_of(self, caller: object) -> weakref.ref[object] | None:
        """What shows the end of its transaction; the job is written, whatever there is to see."""
        try:
            line = weakref.ref(self._lines.line_of(caller))
            hash(line)
        except Exception as error:
            log.debug("a connection shows nothing", error=type(error).__name__)
            return None
        return line

    def _is_new(self, xid: int, line: weakref.ref[object] | None) -> bool:
        """Keep a transaction in mind; whether it was not there before."""
        if line is None:
            new = xid not in self._unseen
            self._unseen[xid] = None
        else:
            before = self._open.pop(line, None)
            new = before != xid
            if new and before is not None:
                self._over[before] = None
            self._open[line] = xid
        self._bound()
        return new

    def _bound(self) -> None:
        for pending in (self._open, self._over, self._unseen):
            if len(pending) > PENDING_MAX:
                _forget_oldest(pending)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="leasebook-notifier", daemon=True)
        at_work()
        try:
            self._thread.start()
        except RuntimeError:
            # The interpreter is ending; polling finds the job.
            self._thread = None
            self._forget_all()

    def _forget_all(self) -> None:
        for pending in (self._open, self._over, self._unseen):
            pending.clear()

    @property
    def pending(self) -> int:
        """How many transactions are watched."""
        with self._changed:
            return len(self._pending)

    @property
    def _pending(self) -> list[int]:
        return [*self._over, *self._unseen, *self._open.values()]

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Ring for what has committed by now, waiting at most so long, and stop.

        Who closes it again does not wait again.
        """
        wait_for([self.end()], seconds)

    def end(self) -> threading.Thread | None:
        """Begin to close; what there is to wait for."""
        with self._changed:
            thread = None if self._closing else self._thread
            self._closing = True
            self._changed.notify_all()
        return thread

    def after_fork(self) -> None:
        """In a child: the thread is gone and the connection is the parent's, so begin anew."""
        self._start_anew()

    def _serve(self) -> None:
        commits: Commits | None = None
        try:
            while self._goes_on():
                if commits is None:
                    commits = self._connect()
                self._ask(commits)
        except Exception as error:
            # Nobody waits for this thread, and what it does is done by polling too.
            log.debug("gave up ringing for a while", error=type(error).__name__)
            self._give_up()
        finally:
            if commits is not None:
                self._close(commits)

    def _goes_on(self) -> bool:
        """Wait until it is time to ask about all; False when this thread should end."""
        with self._changed:
            while not self._closing:
                now = time.monotonic()
                if self._look_at <= now and self._should_ask(now):
                    break
                self._asleep_until = self._look_at
                self._changed.wait(None if self._look_at == NEVER else self._look_at - now)
            # From here to the next sleep nobody needs to wake it.
            self._asleep_until = 0.0
            if self._closing and not self._pending:
                self._thread = None
                return False
            return True

    def _should_ask(self, now: float) -> bool:
        """Look at the connections: is a transaction over, or is it time to ask about all?"""
        for line, xid in tuple(self._open.items()):
            connection = line()
            if connection is None or self._lines.is_over(connection):
                del self._open[line]
                self._over[xid] = None
        if self._over or now >= self._ask_at:
            return True
        self._look_at = min(now + self._patience(), self._ask_at) if self._open else self._ask_at
        return False

    def _ask(self, commits: Commits) -> None:
        with self._changed:
            over, xids, closing = frozenset(self._over), self._pending, self._closing
            self._look_at = self._ask_at = NEVER
        began = time.monotonic()
        committed, forgotten = commits.ring_for(xids)
        now = time.monotonic()
        with self._changed:
            if closing:
                self._forget_all()
            done = {*committed, *forgotten}
            # What looked over when it was asked about, and is not, cannot be seen.
            self._unseen |= {xid: None for xid in self._over if xid in over}
            self._over = {xid: None for xid in self._over if xid not in over and xid not in done}
            self._unseen = {xid: None for xid in self._unseen if xid not in done}
            self._open = {line: xid for line, xid in self._open.items() if xid not in done}
            if committed:
                took = now - began
                busy = took > SLOW_SECONDS or began - self._quiet_until < QUIET_SECONDS
                quiet = min(QUIET_SHARE * took, QUIET_SECONDS_MAX) if busy else 0.0
                self._quiet_until = now + max(quiet, QUIET_SECONDS)
            if self._pending:
                wait = min(ASK_SECONDS * 2.0 ** min(self._asks, 16), ASK_SECONDS_MAX)
                self._asks += 1
                self._ask_at = min(self._ask_at, now + wait)
                look = 0.0 if self._over else self._patience() if self._open else wait
                self._look_at = max(min(self._look_at, now + look), self._quiet_until)

    def _patience(self) -> float:
        self._step += 1
        if self._step < len(LOOKS_SECONDS):
            return LOOKS_SECONDS[self._step]
        doublings = min(self._step - len(LOOKS_SECONDS) + 1, 16)
        return min(LOOK_SECONDS_MAX, LOOKS_SECONDS[-1] * 2.0**doublings)

    def _give_up(self) -> None:
        with self._changed:
            self._forget_all()
            self._look_at = self._ask_at = self._asleep_until = NEVER
            self._thread = None
            self._paused_until = time.monotonic() + PAUSE_SECONDS

    def _close(self, commits: Commits) -> None:
        try:
            commits.close()
        except Exception as error:
            log.debug("could not close", error=type(error).__name__)


def _forget_oldest(pending: dict[Any, Any]) -> None:
    del pending[next(iter(pending))]
