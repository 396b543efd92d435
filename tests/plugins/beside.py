"""Long campaigns run beside the other tests, at the lowest priority; their own tests come last.

Most tests wait for processes, clocks and disks: what they leave of the processor is enough for some
ten thousand small worlds.  ``@pytest.mark.beside(arguments of python)`` names the command, and the
fixture ``beside`` gives what it said once it has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

TOP = Path(__file__).parents[2]
MARK = "beside"
NONE: dict[str, subprocess.Popen[str]] = {}
RUNNING = pytest.StashKey[dict[str, subprocess.Popen[str]]]()


class Said(NamedTuple):
    """How a command ended."""

    code: int
    text: str


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(*arguments): python runs these beside the tests")
    config.stash[RUNNING] = {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs beside has the longest time when its tests come last."""
    items.sort(key=lambda item: item.get_closest_marker(MARK) is not None)


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    for item in session.items:
        if (mark := item.get_closest_marker(MARK)) is not None:
            session.config.stash[RUNNING][item.nodeid] = _start(mark.args)


def _start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=_last_of_all,
    )


def _last_of_all() -> None:
    os.nice(19)


@pytest.fixture
def beside(request: pytest.FixtureRequest) -> Callable[[], Said]:
    """Wait for the command of this test."""
    process = request.config.stash[RUNNING][request.node.nodeid]

    def ended() -> Said:
        text, _ = process.communicate()
        return Said(process.returncode, text)

    return ended


def pytest_unconfigure(config: pytest.Config) -> None:
    """Nobody waits for them any more, nor for the processes that they have started."""
    for process in config.stash.get(RUNNING, NONE).values():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
