"""How commands print and how they end.

Exit codes: 0 done; 1 the answer is a finding (a violation, an incomplete schema, no such job);
2 the command or its input was refused; 3 the database could not be reached.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from ...domain.errors import LeasebookError
from ..ports import StoreUnavailable

FINDING = 1
REFUSED = 2
UNAVAILABLE = 3

console = Console()


def print_json(value: object) -> None:
    """One JSON document on standard output; times as RFC 3339, ids as text."""
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table for people; empty cells for None."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, padding=(0, 2))
    for index, column in enumerate(columns):
        right = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    # A row is a line, whatever the width of the terminal: it can be searched and copied.
    wide = Console(
        width=max(console.width, Measurement.get(console, console.options, table).maximum)
    )
    wide.print(table, soft_wrap=True)


def finish(code: int) -> NoReturn:
    """End the command with ``code``."""
    raise SystemExit(code)


@contextmanager
def answering() -> Iterator[None]:
    """Turn what leasebook refuses into a line on standard error and an exit code."""
    try:
        yield
    except StoreUnavailable as error:
        click.echo(f"leasebook: the database is unavailable: {error}", err=True)
        finish(UNAVAILABLE)
    except LeasebookError as error:
        click.echo(f"leasebook: {error}", err=True)
        finish(FINDING if error.code.startswith("schema_") else REFUSED)


def is_terminal() -> bool:
    """Whether a person looks at standard output."""
    return sys.stdout.isatty()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone().isoformat(sep=" ", timespec="milliseconds")
    return str(value)


def _plain(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"cannot print a {type(value).__name__} as JSON")
