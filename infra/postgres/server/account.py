"""Which user the server runs as. PostgreSQL refuses root.

An ordinary user runs it as itself. Root runs it in a user namespace of its own, in which root's
files belong to user 65534; where the kernel does not allow that (many containers), as `postgres` or
`nobody`, who then own the cluster.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import ServerError
from .folder import SERVICE_ACCOUNTS, service_uids

PROBE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Account:
    """How a program of the server is started: behind `prefix`, or as `uid` and `gid`."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def give(self, path: Path) -> None:
        """Make `path`, and what is in it, this account's."""
        if self.uid is None or self.gid is None:
            return
        os.chown(path, self.uid, self.gid)
        for top, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.chown(os.path.join(top, name), self.uid, self.gid, follow_symlinks=False)

    def reaches(self, path: Path) -> bool:
        """Whether every folder above `path` lets this account pass."""
        return self.uid is None or all(self._passes(folder) for folder in path.resolve().parents)

    def _passes(self, folder: Path) -> bool:
        seen = folder.stat()
        if seen.st_uid == self.uid:
            return bool(seen.st_mode & stat.S_IXUSR)
        if seen.st_gid == self.gid:
            return bool(seen.st_mode & stat.S_IXGRP)
        return bool(seen.st_mode & stat.S_IXOTH)


@cache
def root_namespace() -> tuple[str, ...]:
    """The command that makes root an ordinary user for PostgreSQL; empty where it does not work."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    prefix = (unshare, "--user", "--map-user=65534", "--map-group=65534")
    try:
        probe = subprocess.run(
            [*prefix, "sh", "-c", "id -u"], capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return prefix if probe.returncode == 0 and probe.stdout.strip() == "65534" else ()


def choose_account(cluster: Path, programs: Path) -> Account:
    """Choose who runs the server whose cluster is, or will be, at `cluster`.

    Raises:
        ServerError: `root_refused`, when this is root and no other account can do it.
    """
    if os.geteuid() != 0:
        return Account()
    owner = cluster.stat().st_uid if cluster.exists() else 0
    if owner == 0 and root_namespace():
        return Account(prefix=root_namespace())
    accounts = service_uids() if owner == 0 else {owner: cluster.stat().st_gid}
    for uid, gid in accounts.items():
        account = Account(uid=uid, gid=gid)
        if account.reaches(cluster.parent) and account.reaches(programs / "postgres"):
            return account
    names = " and ".join(SERVICE_ACCOUNTS)
    raise ServerError(
        "root_refused",
        "cannot start a PostgreSQL as root: PostgreSQL refuses root, user namespaces (unshare) do "
        f"not work here, and the accounts {names} do not exist or cannot reach {cluster.parent} "
        f"and {programs}. Run as an ordinary user, set LEASEBOOK_DATA_DIR to a folder they can "
        "reach, or set LEASEBOOK_DSN to a server that is running.",
    )
