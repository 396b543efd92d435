"""The command as a process: its streams, its signals, what stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from leasebook.infra.cli.commands import COMMANDS, main
from tests.cli.conftest import Leasebook
from tests.support.standing import fill
from tests.support.workers import DEADLINE_SECONDS, eventually

COMMAND = (sys.executable, "-m", "leasebook.infra.cli")


def leaves(command: click.Command, *above: str) -> Iterator[tuple[str, ...]]:
    """The words of every command that does something."""
    if not isinstance(command, click.Group):
        yield above
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, *above, name)


def test_help_lists_every_command(leasebook: Leasebook) -> None:
    answer = leasebook("--help")
    assert answer.code == 0
    for command in COMMANDS:
        assert f"  {command} " in answer.out
    for words in leaves(main):
        told = leasebook(*words, "-h")
        assert told.code == 0
        assert any(each in told.out for each in ("--json", "--format", "--out"))
        assert "--dsn" in told.out
    assert leasebook().code == 2, "without a command it shows the same as a mistake"


def test_version(leasebook: Leasebook) -> None:
    import leasebook as package

    assert leasebook("--version").out == f"leasebook, version {package.__version__}\n"


def test_a_reader_that_leaves_is_no_error(database_dsn: str) -> None:
    fill(database_dsn)
    read, write = os.pipe()
    os.close(read)
    listing = subprocess.Popen(
        [*COMMAND, "list", "--dsn", database_dsn], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    _, told = listing.communicate(timeout=DEADLINE_SECONDS)
    assert (listing.returncode, told) == (0, b"")


def test_a_script_gets_no_control_sequences(database_dsn: str) -> None:
    ids = fill(database_dsn)
    for words in (["stats"], ["list"], ["history", str(ids["done"])], ["check"], ["nosuch"]):
        done = subprocess.run(
            [*COMMAND, *words],
            env={**os.environ, "LEASEBOOK_DSN": database_dsn, "TERM": "xterm-256color"},
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.fault
def test_ctrl_c_while_it_waits_for_input(database_dsn: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import sys, threading\n"
        "from leasebook import Book\n"
        "book = Book()\n"
        "@book.job\ndef hello() -> None: ...\n"
        "print('ready', file=sys.stderr, flush=True)\n",
        "utf-8",
    )
    waiting = subprocess.Popen(
        [*COMMAND, "enqueue", "shop:book", "hello", "-", "--dsn", database_dsn],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == b"ready\n"
    stat = Path(f"/proc/{waiting.pid}/wchan")
    eventually(lambda: "pipe" in stat.read_text("utf-8"), "it reads from the pipe")
    waiting.send_signal(signal.SIGINT)
    out, told = waiting.communicate(timeout=DEADLINE_SECONDS)
    assert (waiting.returncode, out) == (130, b"")
    assert told.strip() == b"leasebook: interrupted"
