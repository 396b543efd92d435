"""How a user joins the server: two locks, and a keeper if there is none."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

from .errors import ServerError
from .folder import ServerFolder, answers, is_locked, lock_until
from .keeper import EXIT_OTHER_KEEPER, KeeperOptions

KEEPER_BOOT_SECONDS = 30.0
KEEPER_STARTS_MAX = 3
_POLL_SECONDS = 0.005


def join(folder: ServerFolder, options: KeeperOptions, deadline: float) -> tuple[int, str]:
    """Become a user; return the descriptor of the users' lock and the folder of the socket.

    Raises:
        ServerError: `start_timeout` at `deadline` (monotonic clock), or why the keeper ended.
    """
    start_lock = lock_until(folder.start_lock, fcntl.LOCK_EX, deadline)
    if start_lock is None:
        raise _not_ready(folder, "another process has been starting or stopping it all the time")
    try:
        users_lock = lock_until(folder.users_lock, fcntl.LOCK_SH, deadline)
        if users_lock is None:
            raise _not_ready(folder, "its keeper does not let users in")
        try:
            return users_lock, _wait_for_server(folder, options, deadline)
        except BaseException:
            os.close(users_lock)
            raise
    finally:
        os.close(start_lock)


def _wait_for_server(folder: ServerFolder, options: KeeperOptions, deadline: float) -> str:
    """Return the socket's folder when the server is ready, with a keeper beside it."""
    starts = 0
    while time.monotonic() < deadline:
        if is_locked(folder.keeper_lock):
            state = folder.read_state()
            if state is not None and answers(state.socket_dir):
                return state.socket_dir
            time.sleep(_POLL_SECONDS)
            continue
        failure = folder.read_failure() if starts else None
        if failure is not None:
            raise failure
        if starts == KEEPER_STARTS_MAX:
            raise _keeper_failed(folder, f"it was started {starts} times and ended each time")
        starts += start_keeper(folder, options)
    raise _not_ready(folder, "it did not become ready")


def start_keeper(folder: ServerFolder, options: KeeperOptions) -> int:
    """Start a detached keeper, which holds its lock on return; 0 when there is one already.

    Raises:
        ServerError: `keeper_failed`.
    """
    if not sys.executable:
        raise _keeper_failed(folder, "sys.executable is empty, so no process can be started")
    search = [os.path.abspath(entry) for entry in sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search)}
    log_start = folder.log_bytes()
    command = [sys.executable, "-m", f"{__package__}.keeper", str(folder.path)]
    try:
        with folder.log.open("ab") as log:
            started = subprocess.run(
                command,
                input=options.to_json().encode(),
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                start_new_session=True,
                timeout=KEEPER_BOOT_SECONDS,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _keeper_failed(folder, str(error)) from error
    if started.returncode == EXIT_OTHER_KEEPER:
        return 0
    if started.returncode != 0:
        seen = f"it ended with code {started.returncode}:\n{folder.log_tail(log_start)}"
        raise _keeper_failed(folder, seen)
    return 1


def _not_ready(folder: ServerFolder, seen: str) -> ServerError:
    return ServerError(
        "start_timeout",
        f"cannot use the PostgreSQL in {folder.path} in time: {seen}. Its log {folder.log} ends:\n"
        f"{folder.log_tail()}\nTry again, or set LEASEBOOK_DSN to a server that is running.",
    )


def _keeper_failed(folder: ServerFolder, seen: str) -> ServerError:
    return ServerError(
        "keeper_failed",
        f"cannot start the keeper of the PostgreSQL in {folder.path}: {seen}\n"
        "Set LEASEBOOK_DSN to a server that is running.",
    )
