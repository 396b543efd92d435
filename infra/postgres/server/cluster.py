"""Making a cluster: all of it or nothing. Only the keeper does this."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from .account import Account
from .binaries import Binaries, server_environment
from .errors import ServerError
from .folder import ServerFolder

USER = "leasebook"
DATABASE = "leasebook"
INIT_SECONDS = 120.0


def initialise(
    folder: ServerFolder, binaries: Binaries, account: Account, lock: int, *, durable: bool
) -> None:
    """Make the cluster with the database in it under another name, then rename it.

    What a crash leaves under that other name is thrown away by the next attempt. The programs
    inherit `lock`, the server's: one that outlives its keeper is waited for, not written over.

    Raises:
        ServerError: `init_failed`.
    """
    fresh = folder.new_cluster
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o700)
    account.give(fresh)
    locale = ["--encoding=UTF8", "--locale=C"]
    if binaries.major >= 17:
        # Bytes order text, as with C, but upper and lower case know Unicode.
        locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    trust = ["--auth-local=trust", "--auth-host=reject", "--no-instructions"]
    sync = [] if durable else ["--no-sync"]
    where = [f"--pgdata={fresh}", f"--username={USER}"]
    _run_init([binaries.initdb, *where, *locale, *trust, *sync], account, lock)
    single = [binaries.postgres, "--single", "-D", str(fresh), *([] if durable else ["-F"])]
    _run_init([*single, "postgres"], account, lock, text=f"CREATE DATABASE {DATABASE};\n")
    fresh.rename(folder.cluster)
    descriptor = os.open(folder.path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _run_init(command: Sequence[str], account: Account, lock: int, text: str = "") -> None:
    try:
        done = subprocess.run(
            [*account.prefix, *command],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=INIT_SECONDS,
            pass_fds=[lock],
            env=server_environment(),
            user=account.uid,
            group=account.gid,
            extra_groups=None if account.uid is None else [],
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _init_failed(command[0], str(error)) from error
    # A single-user server answers a failed statement with exit code 0.
    if done.returncode != 0 or "ERROR:" in done.stdout:
        raise _init_failed(command[0], done.stdout.strip()[-1500:])


def refuse_other_major(folder: ServerFolder, binaries: Binaries) -> None:
    """Raise `incompatible_cluster` when another major version made the cluster."""
    seen = (folder.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    if seen != str(binaries.major):
        raise ServerError(
            "incompatible_cluster",
            f"cannot open {folder.cluster} with PostgreSQL {binaries.major} ({binaries.source}): "
            f"it was made by PostgreSQL {seen}. Move it away, or install that version.",
        )


def _init_failed(program: str, seen: str) -> ServerError:
    return ServerError(
        "init_failed",
        f"cannot make a PostgreSQL cluster: {program} failed: {seen}\n"
        "Correct the cause, or set LEASEBOOK_DSN to a server that is running.",
    )
