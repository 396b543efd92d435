"""A real PgBouncer in transaction mode before the server of the tests.

Sessions of the server are handed out in turn, so that each transaction of a client meets another
one: whatever a session should remember is missed at once.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from attrs import frozen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from leasebook.infra.postgres.server.account import root_namespace
from tests.support.source import TOP
from tests.support.workers import eventually

STOP_SECONDS = 10.0
#: The name of a socket in a folder of its own, so that nobody else can have it.
PORT = 6432

CONFIG = """
[databases]
* = {target}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 12
min_pool_size = 4
server_round_robin = 1
server_check_delay = 0
logfile = {folder}/log
max_client_conn = 200
"""


@frozen
class Pooler:
    """``dsn`` leads through it; ``log`` is what it wrote so far."""

    dsn: str
    log_file: Path

    @property
    def log(self) -> str:
        """What it wrote so far: connections, and every error that it passed on or made."""
        return self.log_file.read_text("utf-8", "backslashreplace")


def binary() -> str:
    """Where PgBouncer is; installs it where this process may."""
    done = subprocess.run([TOP / ".ci" / "pgbouncer"], capture_output=True, text=True)
    found = done.stdout.strip()
    if done.returncode or not found:
        raise RuntimeError(
            "the tests of pooled connections need PgBouncer, and it is not installed: "
            f"run `apt-get install pgbouncer` as root, or the like. Seen: {done.stderr[-300:]}"
        )
    return found


@contextmanager
def pgbouncer(dsn: str) -> Generator[Pooler]:
    """A pooler before the server and database of ``dsn``, gone afterwards with all its files."""
    program = binary()
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    target = {name: parts[name] for name in ("host", "port", "user", "password") if name in parts}
    folder = Path(tempfile.mkdtemp(prefix="leasebook-test-pooler-"))
    config = folder / "ini"
    told = " ".join(f"{name}='{value}'" for name, value in target.items())
    config.write_text(CONFIG.format(target=told, port=PORT, folder=folder), "utf-8")
    process = subprocess.Popen(
        [*_as_user(folder), program, "-q", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    through = make_conninfo(
        host=str(folder), port=PORT, dbname=parts.get("dbname"), user=parts.get("user")
    )
    try:
        eventually(lambda: _answers(through, process), "PgBouncer answers")
        yield Pooler(through, folder / "log")
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _as_user(folder: Path) -> tuple[str, ...]:
    """What starts it as somebody else than root, whom it refuses."""
    if os.geteuid() != 0:
        return ()
    if namespace := root_namespace():
        return namespace
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups")


def _answers(dsn: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "PgBouncer ended at once"
    try:
        with psycopg.connect(dsn, prepare_threshold=None) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False
