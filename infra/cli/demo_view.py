"""What the demo shows: live progress while it runs, and a report at the end."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from rich.console import Console, Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...projections.story import Line
from ..postgres.reader import QueueStats
from .history import story_table, zone_name

DEPTHS = ("inbox", "grouped", "due", "running", "retrying", "delayed", "held")
BAR_CHARS = 50
SVG_COLUMNS = 96

WORDS = {
    "events": "page events, each enqueued in its own business transaction",
    "groups": "groups they were joined into",
    "runs_saved": "handler runs saved by grouping",
    "runs": "handler runs started",
    "rate_limited": "runs put off by the rate limit, without spending an attempt",
    "retries": "failed runs that were tried again",
    "leases_lost": "leases lost with the killed worker",
    "leases_rerun": "of them run again",
    "late_results_refused": "late results refused",
    "lost_events": "events lost",
    "violations": "invariants violated",
    "seconds": "seconds in all",
}


@frozen
class Moment:
    """One look at the running demo; rates are per second since the look before."""

    seconds: float
    events: int
    accepted: int
    accepted_rate: float
    runs: int
    runs_rate: float
    lost: int
    depth: Mapping[str, int]
    note: str

    def __str__(self) -> str:
        depth = ", ".join(f"{count:,} {name}" for name, count in self.depth.items() if count)
        return (
            f"{self.seconds:3.0f} s: {self.accepted:,} of {self.events:,} events accepted, "
            f"{self.runs:,} runs done, {self.lost} leases lost; {depth or 'nothing waits'}"
        )


def depth_of(stats: Sequence[QueueStats]) -> dict[str, int]:
    """Jobs (and inbox items) by state, over all queues."""
    return {name: sum(getattr(queue, name) for queue in stats) for name in DEPTHS}


def live(moment: Moment) -> Panel:
    """The live view: 18 lines, 80 columns."""
    rates = Table.grid(padding=(0, 2))
    rates.add_column()
    rates.add_column(justify="right", style="bold", min_width=6)
    rates.add_column(justify="right", min_width=7)
    rates.add_column()
    of = f"of {moment.events:,}"
    rates.add_row("events accepted", f"{moment.accepted:,}", f"{moment.accepted_rate:,.0f}/s", of)
    rates.add_row("runs done", f"{moment.runs:,}", f"{moment.runs_rate:,.0f}/s", "")
    rates.add_row("leases lost", f"{moment.lost:,}", "", "")
    depth = Table.grid(padding=(0, 1))
    most = max(1, *moment.depth.values())
    for name, count in moment.depth.items():
        bar = "█" * round(BAR_CHARS * count / most)
        depth.add_row(name, f"{count:,}".rjust(6), Text(bar, style="cyan"))
    # A bar ends no line by itself; a cell of a table does.
    progress = Table.grid(expand=True)
    progress.add_row(ProgressBar(total=moment.events, completed=moment.accepted))
    note = Text(moment.note, style="yellow")
    parts = Group(progress, rates, "", depth, "", note)
    return Panel(parts, title=f"leasebook demo, {moment.seconds:.0f} s", title_align="left")


def report_panel(report: Mapping[str, Any], story: Sequence[Line]) -> Group:
    """The report, and the story of the job that suffered most."""
    numbers = Table.grid(padding=(0, 2))
    numbers.add_column(justify="right", style="bold")
    for name, text in WORDS.items():
        value = report[name]
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        numbers.add_row(shown, text)
    panels = [Panel(numbers, title="what happened", title_align="left")]
    if story:
        zones = [zone_name(line.at.astimezone()) for line in story if line.at is not None][:1]
        told = Group(Text(str(story[0])), story_table(story[1:]))
        title = "the job that suffered most"
        below = "".join(f"times are {zone}" for zone in zones)
        panels.append(
            Panel(told, title=title, title_align="left", subtitle=below, subtitle_align="right")
        )
    return Group(*panels)


def draw(path: Path, report: Mapping[str, Any], story: Sequence[Line]) -> None:
    """Draw the report as an SVG, the same on every terminal.  Raises OSError."""
    canvas = Console(
        record=True,
        width=SVG_COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    canvas.print(report_panel(report, story))
    canvas.save_svg(str(path), title="make demo")
