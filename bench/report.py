"""Results on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table as RichTable

from .goals import verdicts
from .peers import NOT_MEASURED
from .result import TITLES, Result
from .tables import table

#: So many queues stand side by side; more of them below each other.
QUEUES_ABREAST_MAX = 4


def show(console: Console, results: Sequence[Result], absent: Mapping[str, str]) -> None:
    """One table for each measure, who is missing and why, and the goals."""
    for measure in dict.fromkeys(each.measure for each in results):
        _show_measure(console, results, measure)
    for name, why in {**absent, **NOT_MEASURED}.items():
        console.print(f"[yellow]not measured[/]  {name}: {why}", highlight=False)
    for each in verdicts(results):
        if each.met is None:
            continue
        mark = "[green]met[/]" if each.met else "[red]not met[/]"
        console.print(f"{mark}  {each.what}: {each.seen} ({each.goal})", highlight=False)


def _show_measure(console: Console, results: Sequence[Result], measure: str) -> None:
    jobs = max(each.jobs for each in results if each.measure == measure)
    told = f", {jobs:,} jobs" if jobs else ""
    made = table(results, measure)
    shown = RichTable(title=f"{measure}: {TITLES[measure]}{told}", title_justify="left")
    lines = [made.headings, *made.rows]
    if len(made.rows) <= QUEUES_ABREAST_MAX:
        lines = list(zip(*lines, strict=True))
    for number, heading in enumerate(lines[0]):
        shown.add_column(heading, justify="right" if number else "left")
    for row in lines[1:]:
        shown.add_row(*row)
    console.print(shown)
