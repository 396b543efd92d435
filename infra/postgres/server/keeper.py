"""The keeper: a small process per data folder that starts the server and stops it after its users.

`python -m leasebook.infra.postgres.server.keeper DIR` takes the keeper's lock, detaches, and
returns 0; the detached process goes on. It returns 3 when there is a keeper already. Options come
on standard input as one JSON object, so that nothing of them shows in a list of processes.

The keeper waits for three things, none of them by polling. The exclusive lock on `users.lock` means
that no user is left; it then needs `start.lock` too, else somebody is just arriving and it gives
back. The lock on `server.lock` means that the server died while it had users: it is started again,
unless it dies too often. SIGTERM means stop at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from .binaries import Binaries, find_binaries
from .errors import ServerError
from .folder import (
    POLL_SECONDS,
    ServerFolder,
    ServerState,
    lock_until,
    try_lock,
    wait_lock,
)
from .process import RunningServer, remove_socket_dir, start_or_adopt

EXIT_OTHER_KEEPER = 3
# Users and starting keepers take the keeper's lock for an instant to look at it.
KEEPER_LOCK_SECONDS = 0.5
DEATHS_MAX = 5
DEATHS_WINDOW_SECONDS = 60.0
LOG_BYTES_MAX = 8_000_000


class Wake(Enum):
    """Why the keeper wakes up."""

    NO_USERS = "no users"
    SERVER_DIED = "server died"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """What the user that starts the keeper wants; times in seconds."""

    binaries_folder: str
    major: int
    source: str
    settings: dict[str, str] = field(default_factory=dict[str, str])
    linger_seconds: float = 0.0
    start_timeout_seconds: float = 60.0

    @classmethod
    def default(cls) -> KeeperOptions:
        found = find_binaries()
        return cls(str(found.folder), found.major, found.source)

    @classmethod
    def from_json(cls, text: str) -> KeeperOptions:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def binaries(self) -> Binaries:
        return Binaries(Path(self.binaries_folder), self.major, self.source)


class Keeper:
    """The detached process; it holds the keeper's lock already.

    `earlier` is what the last keeper left when it was killed.
    """

    def __init__(
        self, folder: ServerFolder, options: KeeperOptions, earlier: ServerState | None
    ) -> None:
        self._folder = folder
        self._options = options
        self._earlier = earlier
        self._wakes: SimpleQueue[Wake] = SimpleQueue()

    def run(self) -> None:
        """Serve until no user is left, SIGTERM comes, or the server cannot be kept alive."""
        signal.signal(signal.SIGTERM, self._terminate)
        # The user that started this process may have blocked signals.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        server = self._start()
        if self._earlier is not None and self._earlier.socket_dir != server.socket_dir:
            remove_socket_dir(self._folder, self._earlier.socket_dir)
        threading.Thread(target=self._watch_users, daemon=True).start()
        deaths: list[float] = []
        while self._wakes.get() is Wake.SERVER_DIED:
            self._folder.forget()
            server.forget()
            now = time.monotonic()
            deaths = [at for at in deaths if at > now - DEATHS_WINDOW_SECONDS] + [now]
            if len(deaths) > DEATHS_MAX:
                raise ServerError(
                    "start_failed",
                    f"the PostgreSQL in {self._folder.cluster} died {len(deaths)} times within "
                    f"{DEATHS_WINDOW_SECONDS:.0f} s. Its log {self._folder.log} ends:\n"
                    f"{self._folder.log_tail()}",
                )
            server = self._start()
        self._folder.forget()
        server.stop()

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self._wakes.put(Wake.TERMINATED)

    def _start(self) -> RunningServer:
        deadline = time.monotonic() + self._options.start_timeout_seconds
        options = self._options
        server = start_or_adopt(self._folder, options.binaries, options.settings, deadline)
        threading.Thread(target=self._watch_server, daemon=True).start()
        self._folder.write_state(ServerState(server.socket_dir, os.getpid(), server.pid))
        return server

    def _watch_server(self) -> None:
        os.close(wait_lock(self._folder.server_lock))
        self._wakes.put(Wake.SERVER_DIED)

    def _watch_users(self) -> None:
        """Wake the keeper when no user is left, and keep both locks until this process ends."""
        while True:
            os.close(wait_lock(self._folder.users_lock))
            time.sleep(self._options.linger_seconds)
            if self._shut_the_door():
                self._wakes.put(Wake.NO_USERS)
                return
            time.sleep(POLL_SECONDS)

    def _shut_the_door(self) -> bool:
        nobody_inside = try_lock(self._folder.users_lock, fcntl.LOCK_EX)
        if nobody_inside is None:
            return False
        if try_lock(self._folder.start_lock, fcntl.LOCK_EX) is None:
            os.close(nobody_inside)
            return False
        return True


def main(arguments: list[str]) -> int:
    """Take the lock, detach and keep. Returns the exit code of the process that was called."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m leasebook.infra.postgres.server.keeper DIR\n")
        return 2
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    options = KeeperOptions.from_json(text) if text.strip() else KeeperOptions.default()
    folder = ServerFolder(Path(arguments[0]).absolute())
    folder.prepare()
    deadline = time.monotonic() + KEEPER_LOCK_SECONDS
    lock = lock_until(folder.keeper_lock, fcntl.LOCK_EX, deadline)
    if lock is None:
        return EXIT_OTHER_KEEPER
    earlier = folder.read_state()
    folder.forget()
    if folder.log_bytes() > LOG_BYTES_MAX:
        folder.log.replace(folder.log.with_name("server.log.1"))
    sys.stdout.flush()
    sys.stderr.flush()
    # The child inherits the lock; the parent returns, so that nobody has to wait for the child.
    if os.fork() != 0:
        return 0
    os.setsid()
    # For people who look: the pid decides nothing.
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    os._exit(_keep(folder, options, earlier))


def _keep(folder: ServerFolder, options: KeeperOptions, earlier: ServerState | None) -> int:
    failure: ServerError | None = None
    try:
        Keeper(folder, options, earlier).run()
    except ServerError as error:
        failure = error
    except Exception as error:
        traceback.print_exc()
        failure = ServerError("keeper_failed", f"the keeper of {folder.path} failed: {error!r}")
    if failure is not None:
        sys.stderr.write(f"{failure.message}\n")
        sys.stderr.flush()
        folder.write_failure(failure)
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
