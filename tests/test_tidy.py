"""Rules of the house that no linter knows.

A line that breaks one for a good reason says so: `time.sleep(5)  # tidy: the handler must block`.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source import PARTS, TOP, modules, parse, relative, uses

FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 70

# Where it is banned, what is banned, and what to do instead.
CLOCK = "decisions use the database's clock: take `at` as an argument; for durations time.monotonic"
BANNED = [
    (("tests",), "time.sleep", "wait for the thing itself: an event, a barrier, a probe"),
    (PARTS, "datetime.datetime.now", CLOCK),
    (PARTS, "datetime.datetime.utcnow", CLOCK),
    (PARTS, "datetime.datetime.today", CLOCK),
    (PARTS, "datetime.date.today", CLOCK),
    (PARTS, "uuid.uuid4", "ids are in time order: uuid_utils.uuid7, made by the producer"),
    (PARTS, "print", "write through the command line's console, or log with infra/app/logs.py"),
]
MAY_PRINT = ("infra/cli/", "examples/")

# Absolute folders of somebody's machine; a path that goes on from a word is a URL or relative.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|work|Users)/")


def allowed(path: Path) -> set[int]:
    lines = path.read_text("utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if "# tidy: " in line}


def bans(path: Path) -> Iterator[tuple[str, str]]:
    name = relative(path)
    for folders, banned, instead in BANNED:
        if banned == "print" and name.startswith(MAY_PRINT):
            continue
        if name.split("/")[0] in folders:
            yield banned, instead


@pytest.mark.parametrize("path", modules(*PARTS, "tests"), ids=relative)
def test_banned_names(path: Path) -> None:
    instead = dict(bans(path))
    excused = allowed(path)
    found = [
        f"{relative(path)}:{line}: {name}: {instead[name]}"
        for line, name in uses(parse(path))
        if name in instead and line not in excused
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", modules(*PARTS), ids=relative)
def test_sizes(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= FILE_LINES_MAX, f"{relative(path)} has {lines} lines: split it by subject"
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, (
                f"{relative(path)}:{node.lineno}: {node.name} has {length} lines: split it"
            )


def shipped_files() -> list[Path]:
    """Every file that git has or would add; in an unpacked release, every file."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        paths = [TOP / name for name in listing.stdout.split("\0") if name]
    else:
        paths = list(TOP.rglob("*"))
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_paths_of_a_developers_machine() -> None:
    found: list[str] = []
    for path in shipped_files():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{relative(path)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(lines, 1)
            if MACHINE_PATH.search(line)
        ]
    assert not found, "\n".join(found)
