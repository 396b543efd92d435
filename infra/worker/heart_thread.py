"""The heartbeat in a thread of the worker, and the loop that it shares with the child process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from attrs import define, field

from ..ports import Store, StoreUnavailable
from .heart import Heart, Pulse
from .logs import log, log_changes
from .settings import WorkerSettings


def beat_until(
    stop: threading.Event, heart: Heart, after: Callable[[], None] | None = None
) -> None:
    """Beat every ``heartbeat`` seconds until stopped or declared dead by somebody else.

    ``after`` is called after each beat that reached the store.
    """
    while not stop.wait(heart.settings.heartbeat):
        try:
            pulse, changes = heart.pulse(time.monotonic())
        except StoreUnavailable as error:
            log.debug("heartbeat missed", worker=heart.worker, error=str(error)[:300])
            continue
        log_changes(changes)
        if pulse is Pulse.BURIED:
            return
        if after is not None:
            after()


@define(eq=False)
class ThreadHeartbeat:
    """Beats from a thread: for workers inside another program, and for tests in memory.

    It dies with its process, so that a death is noticed by others after ``dead_after`` only.
    """

    store: Callable[[], Store]
    settings: WorkerSettings
    _stop: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, worker: str) -> None:
        """Begin to beat for the worker of this id."""
        stop = self._stop = threading.Event()

        def serve() -> None:
            store = self.store()
            try:
                beat_until(stop, Heart(store, worker, self.settings))
            finally:
                store.close()

        self._thread = threading.Thread(target=serve, name="leasebook-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop beating."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
            self._thread = None

    def leave(self) -> None:
        """Stop beating: others will bury the worker."""
        self.stop()

    def mend(self) -> None:
        """A thread of this process needs no mending."""
