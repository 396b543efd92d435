"""What the demo shows: live progress while it runs, and a report at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...projections.story import Line
from ..postgres.reader import QueueStats

DEPTHS = ("inbox", "grouped", "due", "running", "retrying", "delayed", "held")
BAR_CHARS = 40


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


def depth_of(stats: Sequence[QueueStats]) -> dict[str, int]:
    """Jobs (and inbox items) by state, over all queues."""
    return {name: sum(getattr(queue, name) for queue in stats) for name in DEPTHS}


def live(moment: Moment) -> Panel:
    """The live view."""
    rates = Table.grid(padding=(0, 3))
    rates.add_row(
        f"[bold]{moment.accepted:,}[/] of {moment.events:,} events accepted",
        f"[bold]{moment.accepted_rate:,.0f}[/] events/s",
        f"[bold]{moment.runs:,}[/] runs",
        f"[bold]{moment.runs_rate:,.0f}[/] runs/s",
        f"[bold]{moment.lost}[/] leases lost",
    )
    depth = Table.grid(padding=(0, 1))
    most = max(1, *moment.depth.values())
    for name, count in moment.depth.items():
        bar = "█" * round(BAR_CHARS * count / most)
        depth.add_row(name, f"{count:,}".rjust(6), Text(bar, style="cyan"))
    progress = ProgressBar(total=moment.events, completed=moment.accepted)
    parts = Group(progress, rates, depth, Text(moment.note, style="yellow"))
    return Panel(parts, title=f"leasebook demo, {moment.seconds:.0f} s", title_align="left")


def report_panel(report: Mapping[str, Any], story: Sequence[Line]) -> Group:
    """The report, and the story of the job that suffered most."""
    numbers = Table.grid(padding=(0, 2))
    numbers.add_column(justify="right", style="bold")
    for name, text in WORDS.items():
        value = report[name]
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        numbers.add_row(shown, text)
    lines = Text("\n".join(str(line) for line in story))
    return Group(
        Panel(numbers, title="what happened", title_align="left"),
        Panel(lines, title="the job that suffered most", title_align="left"),
    )


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
