"""Where each queue is installed: an environment of its own, made when it is asked for.

``bench/requirements/NAME.txt`` is what pip is given, and ``NAME/package.json`` npm.  A queue that
cannot be installed is left out by name, with what there is to do; the others are measured all the
same.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from .peers import Spec
from .peers.graphile import VARIABLE

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / ".bench"
REQUIREMENTS = TOP / "bench" / "requirements"
COMMON = REQUIREMENTS / "common.txt"
INSTALL_SECONDS_MAX = 600.0


class NotInstalled(Exception):
    """A queue cannot be had; the message says why, and what to do."""


@frozen
class Environment:
    """The interpreter that runs a queue, and what its processes find in their environment."""

    python: str
    variables: Mapping[str, str]


def environment_of(spec: Spec) -> Environment:
    """Where a queue is installed, which happens now when it has not.  Raises NotInstalled."""
    variables = {name: value for name, value in os.environ.items() if not _left_out(name)}
    if spec.checkout is not None:
        variables["PYTHONPATH"] = _linked(spec.checkout)
    if not spec.kind.installed:
        return Environment(sys.executable, variables)
    folder = FOLDER / "peers" / spec.name
    package = REQUIREMENTS / spec.name / "package.json"
    if package.exists():
        _install_once(folder, package, lambda: _npm(spec.name, folder, package))
        variables[VARIABLE] = str(folder / "node_modules")
        return Environment(sys.executable, variables)
    wanted = REQUIREMENTS / f"{spec.name}.txt"
    _install_once(folder, wanted, lambda: _pip(spec.name, folder, wanted))
    return Environment(str(folder / "bin" / "python"), variables)


def _left_out(name: str) -> bool:
    """Settings of ours, and one by which every process would compile our sources anew.

    (Of what it installs pip makes compiled files, so that the others would not notice.)
    """
    return name.startswith("LEASEBOOK_") or name == "PYTHONDONTWRITEBYTECODE"


def _linked(checkout: Path) -> str:
    """A folder in which another checkout is the package ``leasebook``."""
    place = FOLDER / "checkouts" / hashlib.sha256(str(checkout).encode()).hexdigest()[:12]
    place.mkdir(parents=True, exist_ok=True)
    link = place / "leasebook"
    if not link.is_symlink():
        link.symlink_to(checkout)
    return str(place)


def _install_once(folder: Path, wanted: Path, install: Callable[[], None]) -> None:
    made = folder / "made"
    told = wanted.read_text() + COMMON.read_text()
    if made.exists() and made.read_text() == told:
        return
    shutil.rmtree(folder, ignore_errors=True)
    print(f"installing {folder.name}; only the first time", file=sys.stderr)
    install()
    made.write_text(told)


def _pip(name: str, folder: Path, wanted: Path) -> None:
    found = re.search(r"^# python>=(\d+)\.(\d+)$", wanted.read_text(), re.M)
    least = (int(found[1]), int(found[2])) if found else sys.version_info[:2]
    python = next(_interpreters(least), None)
    version = ".".join(map(str, least))
    if uv := shutil.which("uv"):
        given = python or version
        _run(name, [uv, "venv", "--quiet", "--python", given, str(folder)])
        pip = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    elif python:
        _run(name, [python, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        pip.append("--disable-pip-version-check")
    else:
        raise NotInstalled(
            f"{name} needs Python {version} or newer, and there is none on PATH. Install it, or uv."
        )
    _run(name, [*pip, "-r", str(COMMON), "-r", str(wanted)])


def _npm(name: str, folder: Path, wanted: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled(f"{name} needs npm, and there is none on PATH. Install Node.js.")
    folder.mkdir(parents=True)
    shutil.copy(wanted, folder)
    _run(name, [npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder)])
    node = folder / "node_modules" / "node" / "bin" / "node"
    if not node.exists():
        raise NotInstalled(
            f"{name} has its Node.js from the npm package `node`, which brought none for this "
            "platform. Leave it out with --queues."
        )


def _run(name: str, command: list[str]) -> None:
    try:
        subprocess.run(
            command,
            check=True,
            timeout=INSTALL_SECONDS_MAX,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stdout", None) or error).strip().splitlines()
        raise NotInstalled(
            f"{name} could not be installed: {said[-1] if said else error}. It needs PyPI or the "
            "npm registry; try again, or leave it out with --queues."
        ) from None


def _interpreters(least: tuple[int, ...]) -> Iterator[str]:
    """Pythons from ``least`` on that run: this one, those on PATH, those of pyenv."""
    names = [sys.executable, *(f"python3.{minor}" for minor in range(least[1], least[1] + 5))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    names += sorted(str(each) for each in versions.glob("3.*/bin/python"))
    asked = f"import sys; sys.exit(sys.version_info[:2] < {tuple(least)})"
    for name in names:
        try:
            done = subprocess.run([name, "-c", asked], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            yield name
