"""The folder of one embedded server: its files, its locks, its state.

Every lock is a `flock`, which the kernel releases when the last process that has the file open is
gone, however it went. Four files carry the whole protocol:

- `users.lock`: shared by every user for as long as it uses the server. Nobody left means stop.
- `start.lock`: exclusive while a user arrives and while the keeper stops, so that these two never
  cross.
- `keeper.lock`: exclusive for the life of the keeper, so that there is one.
- `server.lock`: inherited by every process of the server, so that it is free exactly when none of
  them lives; a stale `postmaster.pid` can then be told from a living server.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import ServerError

LOG_TAIL_BYTES = 2_000
POLL_SECONDS = 0.01
# Length and request code, as in the PostgreSQL documentation, "Message Formats", SSLRequest.
_TLS_REQUEST = struct.pack("!II", 8, 80877103)
# The accounts that may own a cluster that root started where namespaces are not available.
SERVICE_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the keeper says of a server that is ready."""

    socket_dir: str
    keeper_pid: int
    postmaster_pid: int


@dataclass(frozen=True, slots=True)
class ServerFolder:
    """`<data folder>/pg<major>` and the names inside."""

    path: Path

    @property
    def cluster(self) -> Path:
        return self.path / "cluster"

    @property
    def new_cluster(self) -> Path:
        """Where initdb works; renamed to `cluster` when everything is there."""
        return self.path / "cluster.new"

    @property
    def socket_dir(self) -> Path:
        return self.path / "run"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def users_lock(self) -> Path:
        return self.path / "users.lock"

    @property
    def start_lock(self) -> Path:
        return self.path / "start.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.path / "keeper.lock"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    def prepare(self) -> None:
        """Make the folder, for this user only.

        Raises:
            ServerError: `data_dir_unusable`, when it cannot be made, written, or is another user's.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.path.stat().st_uid
            os.close(os.open(self.start_lock, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise _unusable(self.path, f"{error.strerror} ({error.filename})") from error
        if owner != os.geteuid() and not (os.geteuid() == 0 and owner in service_uids()):
            raise _unusable(self.path, f"it belongs to user id {owner}, this is {os.geteuid()}")

    def read_state(self) -> ServerState | None:
        try:
            fields = json.loads((self.path / "state.json").read_text(encoding="utf-8"))
            return ServerState(**fields)
        except (OSError, ValueError, TypeError):
            return None

    def write_state(self, state: ServerState) -> None:
        self._write("state.json", {name: getattr(state, name) for name in state.__slots__})

    def read_failure(self) -> ServerError | None:
        """Why the last keeper ended before its server was ready, if it said so."""
        try:
            fields = json.loads((self.path / "failure.json").read_text(encoding="utf-8"))
            return ServerError(str(fields["code"]), str(fields["message"]))
        except (OSError, ValueError, KeyError):
            return None

    def write_failure(self, error: ServerError) -> None:
        self._write("failure.json", {"code": error.code, "message": error.message})

    def forget(self) -> None:
        """Remove what an earlier keeper said."""
        for name in ("state.json", "failure.json"):
            (self.path / name).unlink(missing_ok=True)

    def log_tail(self, since_bytes: int = 0) -> str:
        """The end of the log, at most `LOG_TAIL_BYTES`, nothing written before `since_bytes`."""
        with suppress(OSError), self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(since_bytes, size - LOG_TAIL_BYTES))
            return log.read(LOG_TAIL_BYTES).decode("utf-8", "replace").strip()
        return ""

    def log_bytes(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _write(self, name: str, fields: dict[str, object]) -> None:
        partial = self.path / f"{name}.new"
        partial.write_text(json.dumps(fields), encoding="utf-8")
        partial.replace(self.path / name)


def service_uids() -> dict[int, int]:
    """User id to group id of the service accounts that exist here."""
    found: dict[int, int] = {}
    for name in SERVICE_ACCOUNTS:
        with suppress(KeyError):
            account = pwd.getpwnam(name)
            found[account.pw_uid] = account.pw_gid
    return found


def try_lock(path: Path, mode: int) -> int | None:
    """Lock `path` (`fcntl.LOCK_SH` or `LOCK_EX`) without waiting; a file descriptor, or None.

    Closing the descriptor gives the lock back. It is closed on exec, so that no program started by
    this process keeps the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock_until(path: Path, mode: int, deadline: float) -> int | None:
    """Like `try_lock`, trying again until `deadline` on the monotonic clock."""
    while True:
        descriptor = try_lock(path, mode)
        if descriptor is not None or time.monotonic() >= deadline:
            return descriptor
        time.sleep(POLL_SECONDS)


def wait_lock(path: Path) -> int:
    """Block until `path` is locked exclusively; return the descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def is_locked(path: Path) -> bool:
    """Whether somebody holds `path` exclusively. Takes the lock for an instant to find out."""
    descriptor = try_lock(path, fcntl.LOCK_SH)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def answers(socket_dir: str) -> bool:
    """Whether a living server answers on its socket.

    A connection alone would not tell: the kernel accepts one for a process that is being killed. So
    the server is asked for TLS, the one question that it answers before it knows who asks.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(f"{socket_dir}/.s.PGSQL.5432")
            probe.sendall(_TLS_REQUEST)
            return len(probe.recv(1)) == 1
        except OSError:
            return False


def _unusable(path: Path, seen: str) -> ServerError:
    return ServerError(
        "data_dir_unusable",
        f"cannot keep a PostgreSQL in {path}: {seen}. Set LEASEBOOK_DATA_DIR to a folder that this "
        "user may write, or LEASEBOOK_DSN to a server that is running.",
    )
