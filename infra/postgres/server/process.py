"""Starting a server, adopting one that already runs, and stopping it.

Only the keeper does this, so nothing here competes with another process of the same folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .account import Account, choose_account
from .binaries import Binaries, server_environment
from .cluster import initialise, refuse_other_major
from .errors import ServerError
from .folder import POLL_SECONDS, ServerFolder, answers, lock_until, try_lock

STOP_SECONDS = 60.0
# sun_path has 108 bytes on Linux and 104 on macOS, the closing NUL included.
SOCKET_PATH_BYTES_MAX = 103
SOCKET_DIR_PREFIX = "leasebook-"
_LONGEST_SOCKET_NAME = "/.s.PGSQL.5432.lock"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts connections; `child` is None when an earlier keeper started it."""

    folder: ServerFolder
    socket_dir: str
    pid: int
    child: subprocess.Popen[bytes] | None

    def stop(self) -> None:
        """Stop without waiting for sessions; harder when that takes more than `STOP_SECONDS`."""
        for kind, seconds in (
            (signal.SIGINT, STOP_SECONDS),
            (signal.SIGQUIT, 5.0),
            (signal.SIGKILL, 5.0),
        ):
            with suppress(ProcessLookupError):
                os.kill(self.pid, kind)
            gone = lock_until(self.folder.server_lock, fcntl.LOCK_EX, time.monotonic() + seconds)
            if gone is not None:
                os.close(gone)
                break
        self.forget()

    def forget(self) -> None:
        """Collect the child that has ended, and remove a socket folder outside the data folder."""
        if self.child is not None:
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(1.0)
        remove_socket_dir(self.folder, self.socket_dir)


def start_or_adopt(
    folder: ServerFolder, binaries: Binaries, settings: Mapping[str, str], deadline: float
) -> RunningServer:
    """Return a ready server: the one that runs, else one started now, its cluster made if needed.

    Raises:
        ServerError: `init_failed`, `incompatible_cluster`, `root_refused`, `start_failed`, or
            `start_timeout` when it is not ready by `deadline` (monotonic clock).
    """
    while True:
        lock = try_lock(folder.server_lock, fcntl.LOCK_EX)
        if lock is not None:
            break
        adopted = _adopt(folder)
        if adopted is not None:
            return adopted
        if time.monotonic() >= deadline:
            raise _timeout(folder, "processes of an earlier server still run but do not answer", 0)
        time.sleep(POLL_SECONDS)
    try:
        account = choose_account(folder.cluster, binaries.folder)
        if account.uid is not None and account.gid is not None:
            os.chown(folder.path, account.uid, account.gid)
        if not folder.cluster.exists():
            durable = settings.get("fsync") != "off"
            initialise(folder, binaries, account, lock, durable=durable)
        elif account.uid not in (None, folder.cluster.stat().st_uid):
            account.give(folder.cluster)
        return _start(folder, binaries, account, settings, lock, deadline)
    finally:
        # The server's processes have inherited the lock; this copy is not needed any more.
        os.close(lock)


def _adopt(folder: ServerFolder) -> RunningServer | None:
    """The server of this cluster that an earlier keeper started, when it is ready."""
    status = _read_status(folder)
    if status is None or not status.ready or not answers(status.socket_dir):
        return None
    return RunningServer(folder, status.socket_dir, status.pid, child=None)


def _start(
    folder: ServerFolder,
    binaries: Binaries,
    account: Account,
    settings: Mapping[str, str],
    lock: int,
    deadline: float,
) -> RunningServer:
    refuse_other_major(folder, binaries)
    # Nobody holds the server lock, so this file is stale, whatever process has its number now.
    (folder.cluster / "postmaster.pid").unlink(missing_ok=True)
    socket_dir = _make_socket_dir(folder, account)
    log_start = folder.log_bytes()
    command = [*account.prefix, binaries.postgres, "-D", str(folder.cluster), "-p", "5432"]
    quoted = socket_dir.replace('"', '""')
    for name, value in {
        **settings,
        "unix_socket_directories": f'"{quoted}"',
        "unix_socket_permissions": "0700",
        "listen_addresses": "",
    }.items():
        command += ["-c", f"{name}={value}"]
    with folder.log.open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock],
            cwd="/",
            env=server_environment(),
            user=account.uid,
            group=account.gid,
            extra_groups=None if account.uid is None else [],
        )
    server = RunningServer(folder, socket_dir, child.pid, child)
    _wait_ready(server, child, log_start, deadline)
    return server


def _wait_ready(
    server: RunningServer, child: subprocess.Popen[bytes], log_start: int, deadline: float
) -> None:
    """Wait until the postmaster says in its pid file that it accepts connections."""
    while True:
        status = _read_status(server.folder)
        if status is not None and status.ready and status.pid == child.pid:
            return
        if child.poll() is not None:
            server.forget()
            raise ServerError(
                "start_failed",
                f"cannot start the PostgreSQL in {server.folder.cluster}: it ended with code "
                f"{child.returncode}. Its log {server.folder.log} ends:\n"
                f"{server.folder.log_tail(log_start)}\n"
                "Correct the cause, or set LEASEBOOK_DSN to a server that is running.",
            )
        if time.monotonic() >= deadline:
            server.stop()
            raise _timeout(server.folder, "it was started and is not ready", log_start)
        time.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class _Status:
    pid: int
    socket_dir: str
    ready: bool


def _read_status(folder: ServerFolder) -> _Status | None:
    """What `postmaster.pid` says: line 1 the pid, line 5 the socket folder, line 8 the status."""
    try:
        lines = (folder.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        return _Status(int(lines[0]), lines[4], len(lines) >= 8 and lines[7].strip() == "ready")
    except (OSError, ValueError, IndexError):
        return None


def _make_socket_dir(folder: ServerFolder, account: Account) -> str:
    """The folder of the socket: in the data folder, or where its path is short enough.

    libpq reads a comma as the next host, so a path with one moves too.
    """
    path = folder.socket_dir
    if len(os.fsencode(f"{path}{_LONGEST_SOCKET_NAME}")) <= SOCKET_PATH_BYTES_MAX and (
        "," not in str(path)
    ):
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        for stale in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
            (path / stale).unlink(missing_ok=True)
    else:
        short = [top for top in (tempfile.gettempdir(), "/tmp") if len(top) <= 60]
        path = Path(tempfile.mkdtemp(prefix=SOCKET_DIR_PREFIX, dir=short[0] if short else "/tmp"))
    account.give(path)
    return str(path)


def remove_socket_dir(folder: ServerFolder, socket_dir: str) -> None:
    """Remove a temporary socket folder; the one in the data folder stays."""
    if socket_dir != str(folder.socket_dir) and Path(socket_dir).name.startswith(SOCKET_DIR_PREFIX):
        shutil.rmtree(socket_dir, ignore_errors=True)


def _timeout(folder: ServerFolder, seen: str, log_start: int) -> ServerError:
    return ServerError(
        "start_timeout",
        f"cannot use the PostgreSQL in {folder.cluster}: {seen}. Its log {folder.log} ends:\n"
        f"{folder.log_tail(log_start)}\n"
        "Try again, or set LEASEBOOK_DSN to a server that is running.",
    )
