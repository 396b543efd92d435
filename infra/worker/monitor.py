"""The monitoring line: once a minute, one for the whole queue, whichever worker says it.

Every worker tries; a lock lets one count at a time, and a stamp in the store keeps the others, and
those that start anew, from saying it again within the minute.  It runs on a thread and a store of
its own, because counting a large queue may take longer than a tick should.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from attrs import define

from ...projections.depth import Depth
from ..app.logs import Logger
from ..ports import Store, StoreUnavailable
from .failure import describe
from .order import free_stranded

EVERY_SECONDS = 60.0
DUTY = "monitoring line"
#: A worker that has just started has more urgent things to ask the database.
FIRST_SECONDS = 5.0
#: While another worker counts, and after an outage.
AGAIN_SECONDS = 5.0
#: So many failures may be an outage like any other.
FAILURES_UNTOLD = 4
#: How soon a stopped worker's thread notices.
NOTICE_SECONDS = 0.5

log = Logger("leasebook.queue")
trouble = Logger("leasebook.worker")


@define(eq=False)
class Monitor:
    """Says the line until ``stopped``.  ``store`` opens a store, which is closed after each use."""

    store: Callable[[], Store]
    stopped: Callable[[], bool]
    every: float = EVERY_SECONDS
    first: float = FIRST_SECONDS

    def start(self) -> None:
        """Begin, on a thread that keeps no process alive."""
        threading.Thread(target=self.run, name="leasebook-monitor", daemon=True).start()

    def run(self) -> None:
        """Say the line whenever it is due."""
        failures = 0
        self._wait(self.first)
        while not self.stopped():
            try:
                left = self.look()
                failures = 0
            except Exception as error:
                # The tick thread tells of an outage; what goes on longer is a count of its own.
                unusual = not isinstance(error, StoreUnavailable)
                left = min(self.every, AGAIN_SECONDS * 2.0**failures)
                failures += 1
                if failures == (1 if unusual else FAILURES_UNTOLD):
                    trouble.error("queue cannot be counted", error=describe(error))
            self._wait(left)

    def _wait(self, seconds: float) -> None:
        until, idle = time.monotonic() + seconds, threading.Event()
        while not self.stopped() and (left := until - time.monotonic()) > 0:
            idle.wait(min(left, NOTICE_SECONDS))

    def look(self) -> float:
        """Say the line if it is due; the seconds until the next look.

        The line is said after the commit: a crash between the two leaves one out, and none is
        ever said twice.
        """
        store = self.store()
        counted: Depth | None = None
        try:
            with store.transaction() as tx:
                if not tx.lead(DUTY):
                    return min(self.every, AGAIN_SECONDS)
                left = tx.due_again(DUTY, self.every)
                if left == 0.0:
                    counted = tx.depth()
            if counted is None:
                return left
            say(counted)
            if counted.stopped:
                _look_after_blocked(store)
            return self.every
        finally:
            with suppress(StoreUnavailable):
                store.close()


def _look_after_blocked(store: Store) -> None:
    """An outage here is told of as any other, by the tick thread."""
    try:
        free_stranded(store)
    except StoreUnavailable:
        return
    except Exception as error:
        trouble.error("blocked jobs cannot be looked after", error=describe(error))


def say(depth: Depth) -> None:
    """``queue due=… in_flight=… total=…``, as an error when too much is due."""
    line = log.error if depth.alarming else log.info
    line("queue", due=depth.due, in_flight=depth.in_flight, total=depth.total)
