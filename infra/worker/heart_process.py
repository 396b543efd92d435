"""The heartbeat in a small child process, and what that process does.

The child learns what it needs as one JSON line on its standard input, so that no secret stands on
a command line.  Then the pipe stays open and empty: when it closes without a good-bye, the worker
is gone, and the child expires its leases at once.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import IO

import attrs
from attrs import define

from ..ports import Store, StoreUnavailable
from .heart import Heart
from .heart_thread import beat_until
from .logs import log, log_changes
from .settings import WorkerSettings

GOODBYE = "goodbye\n"
#: How long the child tries to bury its worker when the store is away.
BURY_TRIES = 30


@define(eq=False)
class ProcessHeartbeat:
    """Starts the child, and says good-bye to it.  ``command`` is run with ``config`` on stdin.

    ``config`` is what the child needs to reach the store; the worker's id and settings are added.
    """

    command: Sequence[str]
    config: dict[str, object]
    settings: WorkerSettings
    _child: subprocess.Popen[str] | None = None
    _worker: str = ""

    def start(self, worker: str) -> None:
        """Start the child for the worker of this id."""
        line = json.dumps(
            {**self.config, "worker": worker, "settings": attrs.asdict(self.settings)}
        )
        # A session of its own: a Ctrl-C at the terminal is the worker's to answer.
        child = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        assert child.stdin is not None
        child.stdin.write(line + "\n")
        child.stdin.flush()
        self._child, self._worker = child, worker

    def stop(self) -> None:
        """Say good-bye, so that the child ends without burying the worker."""
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        try:
            child.stdin.write(GOODBYE)
            child.stdin.close()
        except OSError:
            pass  # the child has gone before
        try:
            child.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def mend(self) -> None:
        """Start another child when this one has died."""
        child = self._child
        if child is None or child.poll() is None:
            return
        log.warning("heartbeat child died; starting another", status=child.returncode)
        self.start(self._worker)

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return None if self._child is None else self._child.pid


def serve(stdin: IO[str], open_store: Callable[[dict[str, object]], Store]) -> None:
    """The child: read the configuration, beat, and when the pipe breaks bury the worker."""
    config: dict[str, object] = json.loads(stdin.readline())
    raw = config["settings"]
    assert isinstance(raw, dict)
    raw["queues"] = tuple(raw["queues"])  # pyright: ignore[reportUnknownArgumentType]
    settings = WorkerSettings(**raw)  # pyright: ignore[reportUnknownArgumentType]
    store = open_store(config)
    heart = Heart(store, str(config["worker"]), settings)
    stop = threading.Event()
    beating = threading.Thread(target=beat_until, args=(stop, heart), daemon=True)
    beating.start()
    last_word = stdin.readline()
    stop.set()
    beating.join(timeout=settings.heartbeat)
    if last_word != GOODBYE and settings.death_detection:
        _bury(heart)
    store.close()


def _bury(heart: Heart) -> None:
    log.warning("worker died", worker=heart.worker)
    pause = threading.Event()
    for _ in range(BURY_TRIES):
        try:
            log_changes(heart.bury(heart.worker), heart.worker)
        except StoreUnavailable:
            pause.wait(1.0)
        else:
            return
