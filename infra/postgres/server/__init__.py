"""A PostgreSQL that leasebook starts by itself, for users who have given no DSN.

    with embedded_server() as server:
        engine = create_engine(server.dsn)

It lives in the user's data folder, keeps its data between uses, and is durable (fsync stays on).
All processes of one user share it. The first one starts it, with a keeper process beside it
(`keeper.py`); the keeper stops it when the last user has closed its lease or has ended in
any way, kill -9 included. When the keeper is killed the server goes on, and the next user, or the
next lease that is closed, starts a keeper that adopts it.

Fork: a lease belongs to the process that took it and to children forked from it without exec
(`multiprocessing` with "fork", preforking servers). The server runs until each of them has closed
the lease or ended. Programs started with exec do not inherit it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from .account import root_namespace
from .binaries import Binaries, binaries_in, find_binaries
from .cluster import DATABASE, USER
from .errors import ServerError
from .folder import ServerFolder, is_locked
from .join import join, start_keeper
from .keeper import KeeperOptions

__all__ = [
    "EmbeddedServer",
    "ServerError",
    "ServerLease",
    "default_data_dir",
    "embedded_server",
]

LINGER_SECONDS = 2.0
START_TIMEOUT_SECONDS = 60.0
ROOT_DATA_DIR = Path("/var/lib/leasebook")
_SETTINGS_KEPT = (
    "port",
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
)

logger = logging.getLogger("leasebook.server")


class ServerLease:
    """The right to use a running server; the server runs at least until this is closed.

    A lease that is not closed ends with its process, not when it is garbage-collected.
    """

    def __init__(
        self,
        options: KeeperOptions,
        folder: ServerFolder,
        socket_dir: str,
        users_lock: int,
    ) -> None:
        self._options = options
        self._folder = folder
        self._users_lock = users_lock
        self.folder = folder.path
        self.major = options.major
        self.source = options.source
        self.dsn = f"postgresql://{USER}@/{DATABASE}?host={quote(socket_dir, safe='/')}&port=5432"

    def close(self) -> None:
        """Give the lease back; the second time does nothing. Raises nothing."""
        descriptor, self._users_lock = self._users_lock, -1
        if descriptor < 0:
            return
        os.close(descriptor)
        # A keeper that was killed cannot stop the server, so another one is started for that.
        with suppress(OSError, ServerError):
            if is_locked(self._folder.server_lock) and not is_locked(self._folder.keeper_lock):
                start_keeper(self._folder, self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._users_lock < 0 else "open"
        return f"<ServerLease {state}, PostgreSQL {self.major} ({self.source}) in {self.folder}>"


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """Which server to use: where it lives, and how it is started if it is not running.

    `settings` are PostgreSQL settings, without secrets, since they show on its command line.
    `linger_seconds` is how long it goes on without users; `start_timeout_seconds` bounds a start.
    All three count only for the user that starts the server. `programs` is the folder of `postgres`
    and `initdb`; without it they are looked for (`binaries.py`).
    """

    data_dir: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    linger_seconds: float = LINGER_SECONDS
    start_timeout_seconds: float = START_TIMEOUT_SECONDS
    programs: Path | None = None

    def lease(self) -> ServerLease:
        """Join the server, starting it if needed, and return when it accepts connections.

        Raises:
            ServerError: see its codes.
        """
        for name, value in self.settings.items():
            _check_setting(name, value)
        binaries = find_binaries() if self.programs is None else binaries_in(self.programs)
        data_dir = default_data_dir() if self.data_dir is None else self.data_dir
        folder = ServerFolder(data_dir.expanduser().absolute() / f"pg{binaries.major}")
        folder.prepare()
        _warn_of_other_majors(folder, binaries)
        options = KeeperOptions(
            str(binaries.folder),
            binaries.major,
            binaries.source,
            dict(self.settings),
            self.linger_seconds,
            self.start_timeout_seconds,
        )
        deadline = time.monotonic() + self.start_timeout_seconds
        users_lock, socket_dir = join(folder, options, deadline)
        return ServerLease(options, folder, socket_dir, users_lock)


def embedded_server(
    data_dir: Path | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    linger_seconds: float = LINGER_SECONDS,
    start_timeout_seconds: float = START_TIMEOUT_SECONDS,
    programs: Path | None = None,
) -> ServerLease:
    """Lease this user's embedded server; see `EmbeddedServer` for the arguments.

    Raises:
        ServerError: no binaries, an unusable folder, or a server that does not start.
    """
    return EmbeddedServer(
        data_dir, settings or {}, linger_seconds, start_timeout_seconds, programs
    ).lease()


def default_data_dir() -> Path:
    """`$LEASEBOOK_DATA_DIR`, else `$XDG_DATA_HOME/leasebook`, else `~/.local/share/leasebook`.

    Root without user namespaces gets `/var/lib/leasebook` instead of its home, because the account
    that then runs the server cannot enter there.

    Raises:
        ServerError: `data_dir_unusable`, when this user has no home.
    """
    named = os.environ.get("LEASEBOOK_DATA_DIR")
    if named:
        return Path(named)
    shared = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(shared):
        return Path(shared, "leasebook")
    if os.geteuid() == 0 and not root_namespace():
        return ROOT_DATA_DIR
    try:
        return Path.home() / ".local" / "share" / "leasebook"
    except RuntimeError as error:
        raise ServerError(
            "data_dir_unusable",
            f"cannot keep a PostgreSQL in the user's home: {error} Set LEASEBOOK_DATA_DIR to a "
            "folder, or LEASEBOOK_DSN to a server that is running.",
        ) from error


def _check_setting(name: str, value: str) -> None:
    kept = name.startswith("unix_socket_") or name.startswith(_SETTINGS_KEPT)
    if kept or not re.fullmatch(r"[a-z_][a-z0-9_.]*", name) or "\0" in value:
        why = "leasebook sets it itself" if kept else "it is not a setting's name and value"
        raise ServerError(
            "setting_refused",
            f"cannot start a PostgreSQL with {name!r}: {why}. Leave it out of `settings`.",
        )


def _warn_of_other_majors(folder: ServerFolder, binaries: Binaries) -> None:
    """A new major version begins with an empty cluster; say where the older jobs are."""
    if folder.cluster.exists():
        return
    for other in sorted(folder.path.parent.glob("pg*/cluster/PG_VERSION")):
        logger.warning(
            "PostgreSQL %d (%s) starts with an empty cluster in %s; %s holds one of another "
            "version, whose jobs are not seen here",
            binaries.major,
            binaries.source,
            folder.path,
            other.parent.parent,
        )
