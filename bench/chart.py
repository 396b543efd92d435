"""The chart of the page: bars of each queue for what people ask about first.

Plain SVG, readable on white and on black, with no script and no font of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

from attrs import frozen

from .ratios import shown
from .result import Result
from .tables import name_of, order

WIDTH = 760
LABEL = 210
VALUE = 90
BAR = 14
STEP = 20
HEAD = 34
GAP = 22
OWN = "leasebook"
STYLE = """
text { font: 13px sans-serif; fill: #57606a }
.title { font-weight: 600; fill: #24292f }
.own { font-weight: 600; fill: #0a7d5a }
.bar { fill: #a9b4c0 } .bar.own { fill: #12a67a } .bar.limit { fill: #d8dee4 }
@media (prefers-color-scheme: dark) {
  text { fill: #9da7b1 } .title { fill: #e6edf3 } .own { fill: #2cc295 }
  .bar { fill: #57606a } .bar.limit { fill: #333b44 }
}
"""


@frozen
class Panel:
    """One group of bars: which figure of which measure."""

    measure: str
    figure: str
    title: str
    digits: int = 0


PANELS = (
    Panel("drain", "jobs_per_second", "Drain, one worker process: jobs a second"),
    Panel("two", "jobs_per_second", "Drain, two worker processes: jobs a second"),
    Panel("drain", "bulk_per_second", "Enqueue in bulk: jobs a second"),
    Panel("single", "single_per_second", "Enqueue one by one: jobs a second"),
    Panel("latency", "start_p99", "Start on an idle queue, p99: milliseconds, less is better", 1),
)


def chart(results: Sequence[Result]) -> str:
    """The whole picture."""
    parts: list[str] = []
    top = 6
    for panel in PANELS:
        values = _values(results, panel)
        if values:
            parts.extend(_panel(panel, values, top))
            top += HEAD + STEP * len(values) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" '
        f'height="{top}" role="img" aria-label="Speed of leasebook beside other queues">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def _values(results: Sequence[Result], panel: Panel) -> list[tuple[str, float]]:
    queues = dict.fromkeys(each.queue for each in results if each.measure == panel.measure)
    found = {queue: shown(results, panel.measure, queue, panel.figure) for queue in queues}
    return [(queue, median(found[queue])) for queue in sorted(queues, key=order) if found[queue]]


def _panel(panel: Panel, values: Sequence[tuple[str, float]], top: int) -> list[str]:
    most = max(value for _, value in values) or 1.0
    room = WIDTH - LABEL - VALUE
    lines = [f'<text class="title" x="0" y="{top + 16}">{escape(panel.title)}</text>']
    for number, (queue, value) in enumerate(values):
        y = top + HEAD + STEP * number
        kind = " own" if queue == OWN else " limit" if queue == "bare" else ""
        width = max(1.0, value / most * room)
        text = f"{value:,.{panel.digits}f}"
        lines.append(
            f'<text class="name{kind}" x="{LABEL - 10}" y="{y + 12}" text-anchor="end">'
            f"{escape(name_of(queue))}</text>"
        )
        lines.append(
            f'<rect class="bar{kind}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}"/>'
        )
        lines.append(
            f'<text class="{kind.strip() or "value"}" x="{LABEL + width + 6:.1f}" y="{y + 12}">'
            f"{text}</text>"
        )
    return lines
