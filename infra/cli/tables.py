"""What people see of an answer, in the width of their terminal.

It needs rich, which takes long to import: a worker does without this file.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.cells import cell_len
from rich.console import Console

from .output import line_of

console = Console()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table for people; numbers to the right, nothing for None.

    A row is a line, whatever the width of the terminal: so it can be searched and copied.
    """
    cells = [["" if value is None else line_of(str(value)) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    numbers = [
        all(isinstance(row[index], int) for row in rows) and bool(rows)
        for index in range(len(columns))
    ]
    for row in (columns, *cells):
        padded = [
            " " * (width - cell_len(cell)) + cell
            if number
            else cell + " " * (width - cell_len(cell))
            for cell, width, number in zip(row, widths, numbers, strict=True)
        ]
        line = "  ".join(padded).rstrip()
        click.echo(click.style(line, bold=True) if row is columns else line)
