"""The command in this process, in a folder with an application."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner

from leasebook.infra.cli.commands import main

APP = """
from attrs import frozen
from leasebook import Book, Group, Run

book = Book()
other = Book()
number = 7


@frozen
class PageChanged:
    path: str
    size: int = 0


@book.job(queue="mail")
async def send_mail(run: Run, to: str, copies: int = 1) -> None: ...


@book.job(on_expired="abort")
async def charge(run: Run, cents: int) -> None: ...


@book.job(group=Group(window=10, max_hold=60))
async def sync_page(run: Run, items: list[PageChanged]) -> None: ...
"""


@frozen
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


Leasebook = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with an application that is imported anew for each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(APP, "utf-8")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and str(tmp_path) in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]


@pytest.fixture
def leasebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Leasebook:
    """The command.  Nothing that it foresees may raise, so what it raises is the test's failure."""
    for name in ("DSN", "SCHEMA", "HOST", "PORT", "DATABASE"):
        monkeypatch.delenv(f"LEASEBOOK_{name}", raising=False)

    def run(*words: str, env: Mapping[str, str] | None = None, stdin: str | None = None) -> Answer:
        result = CliRunner().invoke(main, list(words), input=stdin, env=env, prog_name="leasebook")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run
