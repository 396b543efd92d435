"""How commands print and how they end.

Exit codes: 0 done; 1 the answer is a finding (a violation, an incomplete schema, no such job);
2 the command or its input was refused; 3 the database could not be used; 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

import click

from ...domain.errors import LeasebookError
from ..ports import DataRefused, StoreUnavailable
from ..postgres.server import ServerError

FINDING = 1
REFUSED = 2
UNAVAILABLE = 3
INTERRUPTED = 130

#: What a schema lacks and what a demonstration lost are findings, not refusals of input.
FINDINGS = frozenset({"schema_incomplete", "schema_newer", "demo_failed"})


def print_json(value: object) -> None:
    """One JSON document on standard output; times as RFC 3339, ids as text."""
    click.echo(json.dumps(value, default=plain, ensure_ascii=False, indent=2))


def save(path: Path, text: str) -> None:
    """Write a file that was asked for.  Raises click.UsageError that says why it cannot be."""
    with saving(path):
        path.write_text(text, "utf-8")


@contextmanager
def saving(path: Path) -> Generator[None]:
    """The same for whoever writes it in another way."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}.") from None


def finish(code: int) -> NoReturn:
    """End the command with ``code``."""
    raise SystemExit(code)


@contextmanager
def answering(*, as_json: bool = False) -> Generator[None]:
    """Turn what leasebook refuses into a line on standard error and an exit code.

    With ``as_json`` there is also a document on standard output: ``{"error": {...}}``.
    """
    try:
        yield
    except StoreUnavailable as error:
        _end(as_json, UNAVAILABLE, "unavailable", f"the database is unavailable: {error}")
    except DataRefused as error:
        _end(as_json, REFUSED, "data_refused", f"the database refused a value: {error}")
    except LeasebookError as error:
        _end(as_json, _code_of(error), error.code, str(error))
    except ServerError as error:
        _end(as_json, UNAVAILABLE, error.code, error.message)


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether a program reads the answer, seen before it is known whether the words are right."""
    formats = {f"--format{sign}{form}" for sign in "= " for form in ("json", "ndjson")}
    return "--json" in words or any(
        word in formats or f"{before} {word}" in formats for before, word in pairwise(["", *words])
    )


@contextmanager
def piped() -> Generator[None]:
    """End well when nobody reads on; what is left must not make Python complain at its exit."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        finish(0)


@contextmanager
def ending(*, as_json: bool) -> Generator[None]:
    """The same for what click refuses, and for Ctrl-C."""
    try:
        with answering(as_json=as_json):
            yield
    except click.Abort:
        _end(as_json, INTERRUPTED, "interrupted", "interrupted")
    except click.ClickException as error:
        error.show()
        if as_json:
            print_json({"error": {"code": "usage", "message": error.format_message()}})
        finish(error.exit_code)


def _end(as_json: bool, code: int, name: str, message: str) -> NoReturn:
    click.echo(f"leasebook: {message}", err=True)
    if as_json:
        print_json({"error": {"code": name, "message": message}})
    finish(code)


def _code_of(error: LeasebookError) -> int:
    if error.code in FINDINGS:
        return FINDING
    # A migration without PostgreSQL's code lost its connection; any other was refused.
    lost = error.code == "migration_failed" and getattr(error, "sqlstate", None) is None
    return UNAVAILABLE if lost else REFUSED


def line_of(text: str) -> str:
    """``text`` on one line and without control characters, which a job's key may hold."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def plain(value: Any) -> object:
    """What JSON has no form for, as text: times as RFC 3339, ids.  For ``json.dumps``."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"cannot print a {type(value).__name__} as JSON")
