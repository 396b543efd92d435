"""The heartbeat in a small child process, and what that process does.

The child learns what it needs as one JSON line on its standard input, so that no secret stands on
a command line.  Then the pipe stays open and empty: when it closes without a good-bye, the worker
is gone, and the child expires its leases at once.  A process that a handler forked may hold the
pipe open, so the child also looks whether its parent is still the worker.

Through the same pipe a thread of the worker gives signs of life.  It is silent when a handler holds
Python's global lock in foreign code, where no exception, signal or time-out of Python reaches it.
When such a process has a run past its time-out, the child kills it: nothing else can free its slot.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
from attrs import define, field

from ..ports import Store, StoreUnavailable
from .heart import Heart
from .heart_fork import Forked
from .heart_thread import beat_until
from .logs import log, log_changes
from .settings import WorkerSettings

#: By default this signal does nothing, so that one too many is harmless.
INTERRUPTION = signal.SIGURG
GOODBYE, ALIVE = "goodbye", "alive"
GOODBYE_SECONDS = 5.0
#: How long the child tries to bury its worker when the store is away.
BURY_SECONDS = 120.0
BURY_PAUSE_SECONDS = 1.0
PARENT_LOOK_SECONDS = 1.0
#: Stopping is the worker's business; whoever signals its whole group must not stop the beat first.
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@define(eq=False)
class ProcessHeartbeat:
    """Starts the child, and says good-bye to it.  ``command`` is run with ``config`` on stdin.

    ``config`` is what the child needs to reach the store; the worker's id and settings are added.
    ``kill`` tells whether the child may kill a process that is stuck past a time-out, ``forked`` is
    a child that waits for the worker's first id already.  Any thread may call any method.
    """

    command: Sequence[str]
    config: dict[str, object]
    settings: WorkerSettings
    kill: bool = True
    forked: Forked | None = None
    _child: subprocess.Popen[str] | Forked | None = None
    _worker: str = ""
    _lock: threading.RLock = field(factory=threading.RLock)

    def start(self, worker: str) -> None:
        """Start the child for the worker of this id."""
        line = json.dumps(
            {
                **self.config,
                "worker": worker,
                "settings": attrs.asdict(self.settings),
                "parent": os.getpid(),
                "kill": self.kill,
            }
        )
        with self._lock:
            # A session of its own: a Ctrl-C at the terminal is the worker's to answer.
            child = self.forked or subprocess.Popen(
                self.command, stdin=subprocess.PIPE, text=True, start_new_session=True
            )
            self._child, self._worker, self.forked = child, worker, None
            log.debug("heartbeat child started", worker=worker, pid=child.pid)
            assert child.stdin is not None
            try:
                child.stdin.write(line + "\n")
                child.stdin.flush()
            except OSError as error:  # it died at once: the next ``mend`` starts another
                log.warning("heartbeat child died at its start", error=str(error))
                return
            # A child that does not read must not hold up its worker.
            os.set_blocking(child.stdin.fileno(), False)
        threading.Thread(
            target=self._live, args=(child,), name="leasebook-signs-of-life", daemon=True
        ).start()

    def _live(self, child: subprocess.Popen[str] | Forked) -> None:
        """Tell the child now and then that this process gets on."""
        pause = threading.Event()
        assert child.stdin is not None
        while True:
            with self._lock:
                if self._child is not child:
                    return
                with suppress(OSError):
                    os.write(child.stdin.fileno(), f"{ALIVE}\n".encode())
            pause.wait(self.settings.heartbeat)

    def stop(self) -> None:
        """Say good-bye, so that the child ends without burying the worker."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        try:
            child.stdin.write(GOODBYE + "\n")
            child.stdin.close()
        except OSError:
            pass  # the child has gone before
        try:
            child.wait(timeout=GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def leave(self) -> None:
        """Go without a good-bye: the child buries the worker, now or when the store is back."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            assert child.stdin is not None
            child.stdin.close()

    def mend(self) -> None:
        """Start another child when this one has died."""
        with self._lock:
            child = self._child
            if child is None or child.poll() is None:
                return
            log.warning("heartbeat child died; starting another", status=child.returncode)
            try:
                self.start(self._worker)
            except OSError as error:  # no process or descriptor is left; the next ``mend`` tries
                log.warning("heartbeat child could not be started", error=str(error))


class Pipe:
    """Reads lines from the worker, and notices when it is gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    def line(self, parent: object = None) -> str | None:
        """The next line, waited for; None when the worker, process ``parent``, is gone."""
        while b"\n" not in self._read:
            readable, _, _ = select.select([self._descriptor], [], [], PARENT_LOOK_SECONDS)
            if readable:
                data = os.read(self._descriptor, 65_536)
                if not data:
                    return None
                self._read += data
            elif parent is not None and os.getppid() != parent:
                return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


def serve(
    descriptor: int, open_store: Callable[[dict[str, object]], Store], parent: int | None = None
) -> None:
    """The child: read the configuration, beat, and when the worker is gone bury it.

    A forked child knows its ``parent``; another is told with the configuration.
    """
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    pipe = Pipe(descriptor)
    first = pipe.line(parent)
    if first is None:
        return
    config: dict[str, object] = json.loads(first)
    raw = config["settings"]
    assert isinstance(raw, dict)
    raw["queues"] = tuple(raw["queues"])  # pyright: ignore[reportUnknownArgumentType]
    settings = WorkerSettings(**raw)  # pyright: ignore[reportUnknownArgumentType]
    heart = Heart(open_store(config), str(config["worker"]), settings)
    stop = threading.Event()
    # The worker tells its own id: it may be gone before this process could ask for its parent.
    parent = int(str(config["parent"]))
    guard = Guard(heart, parent, kill=bool(config.get("kill")))
    beating = threading.Thread(target=beat_until, args=(stop, heart, guard.look), daemon=True)
    beating.start()
    while (last_word := pipe.line(parent)) == ALIVE:
        guard.heard()
    stop.set()
    if last_word != GOODBYE and settings.death_detection:
        # The beating thread may be in the middle of a call, so this is another store.
        _bury(Heart(open_store(config), heart.worker, settings))


@define(eq=False)
class Guard:
    """Watches for signs of life of the worker, and kills it when it is stuck for good."""

    heart: Heart
    parent: int
    kill: bool
    heard_at: float = field(factory=time.monotonic)

    def heard(self) -> None:
        """A sign of life."""
        self.heard_at = time.monotonic()
        self.heart.signs_of_life()

    def look(self) -> None:
        """Kill the worker if a run is past its time-out and it was silent for ``dead_after``.

        Before that it is interrupted: much of what holds Python's lock, such as a search with a
        regular expression, still looks for signals.  A process that somebody stopped (SIGSTOP, a
        debugger) is left alone: it loses its leases only.
        """
        if not self.heart.overran or not self.kill:
            return
        silence = time.monotonic() - self.heard_at
        if os.getppid() != self.parent or _is_stopped(self.parent):
            return
        if silence < self.heart.settings.dead_after:
            with suppress(ProcessLookupError):
                os.kill(self.parent, INTERRUPTION)
            return
        log.error(
            "worker makes no progress and is killed",
            worker=self.heart.worker,
            pid=self.parent,
            silence=round(silence, 1),
        )
        with suppress(ProcessLookupError):
            os.kill(self.parent, signal.SIGKILL)


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal or a debugger.  Unknown without ``/proc``."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")


def _bury(heart: Heart) -> None:
    log.warning("worker died", worker=heart.worker)
    pause = threading.Event()
    give_up_at = time.monotonic() + BURY_SECONDS
    while time.monotonic() < give_up_at:
        try:
            log_changes(heart.bury(heart.worker))
        except StoreUnavailable:
            pass
        else:
            if not heart.is_burying:
                return
        pause.wait(BURY_PAUSE_SECONDS)
