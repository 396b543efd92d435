"""Processes that use an embedded server, and what can be seen of it from outside."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg

from leasebook.infra.postgres.server.folder import ServerFolder, is_locked

DEADLINE_SECONDS = 30.0

USER_SCRIPT = """
import sys
from pathlib import Path
from leasebook.infra.postgres.server import embedded_server
server = embedded_server(Path(sys.argv[1]), linger_seconds=0, settings={"fsync": "off"})
print(server.dsn, flush=True)
sys.stdin.read()
"""


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll until `condition` holds.

    Raises:
        AssertionError: naming `what`, after `DEADLINE_SECONDS`.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.005)  # tidy: the pause of a poll with a deadline


class UserProcess:
    """A process that leases the server, prints the DSN and waits until its input ends."""

    def __init__(
        self,
        data_dir: Path,
        script: str = USER_SCRIPT,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-c", script, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # Otherwise a second line could hide in a buffer, where select sees nothing.
            env={**os.environ, "PYTHONPATH": search, **(environment or {})},
        )

    def line(self) -> str:
        """The next line that the process prints: first of all, its DSN."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE_SECONDS)
        assert ready, "the user process said nothing"
        return self._process.stdout.readline().decode("utf-8").strip()

    def leave(self) -> None:
        self._process.communicate(timeout=DEADLINE_SECONDS)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=DEADLINE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Outside:
    """The server of a data folder, seen without taking a lease."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir

    @property
    def folder(self) -> ServerFolder:
        found = sorted(self.data_dir.glob("pg*"))
        return ServerFolder(found[-1] if found else self.data_dir / "pg0")

    @property
    def running(self) -> bool:
        return self.folder.path.exists() and is_locked(self.folder.server_lock)

    @property
    def kept(self) -> bool:
        return self.folder.path.exists() and is_locked(self.folder.keeper_lock)

    @property
    def keeper_pid(self) -> int:
        return int(self.folder.keeper_lock.read_text("ascii"))

    @property
    def postmaster_pid(self) -> int:
        lines = (self.folder.cluster / "postmaster.pid").read_text("utf-8").splitlines()
        return int(lines[0])

    def wait_gone(self) -> None:
        wait_until(lambda: not self.running and not self.kept, "server and keeper are gone")

    def clean(self) -> None:
        """Kill what a failed test has left."""
        with suppress(OSError, ValueError):
            if self.kept:
                os.kill(self.keeper_pid, signal.SIGKILL)
        with suppress(OSError, ValueError, IndexError):
            if self.running:
                os.kill(self.postmaster_pid, signal.SIGKILL)


def answers(dsn: str) -> bool:
    """Whether a session can be opened and asked something."""
    try:
        with psycopg.connect(dsn) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False
