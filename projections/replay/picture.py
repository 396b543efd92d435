"""Depth over time as a picture: lines of text for a terminal, and SVG for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from .clock import micros
from .depth import STANDINGS, DepthOverTime, Place

BARS = " ▁▂▃▄▅▆▇█"
#: Colours that people with any colour vision tell apart (Okabe and Ito).
COLOURS = {
    "grouped": "#56b4e9",
    "queued": "#0072b2",
    "leased": "#009e73",
    "retry-wait": "#e69f00",
    "held": "#d55e00",
}
WIDTH, PANEL, LEFT, TOP, GAP = 900, 150, 70, 40, 46
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}"
    ".queue{font-weight:600}.axis{stroke:#999;stroke-width:1}polygon{stroke:#fff;stroke-width:.5}"
    "@media(prefers-color-scheme:dark){svg{background:#111}text{fill:#ddd}}"
)


def highest(depth: DepthOverTime, numbers: Sequence[int], columns: int) -> list[int]:
    """The highest of ``numbers`` in each of so many equal stretches of the window."""
    begin, length = micros(depth.since), micros(depth.until) - micros(depth.since)
    peaks = [0] * columns
    ends = [*(micros(at) for at in depth.times[1:]), micros(depth.until)]
    for at, end, number in zip(depth.times, ends, numbers, strict=True):
        first = (micros(at) - begin) * columns // max(1, length)
        last = (max(micros(at), end - 1) - begin) * columns // max(1, length)
        for column in range(min(first, columns - 1), min(last, columns - 1) + 1):
            peaks[column] = max(peaks[column], number)
    return peaks


def bars(depth: DepthOverTime, place: Place, columns: int) -> str:
    """One place as a line of bars, the highest count as high as a line.  Zero is a blank."""
    peaks = highest(depth, depth.counts[place], columns)
    most = max(1, *peaks)
    # Rounded up: a single job shows.
    return "".join(BARS[-(-peak * (len(BARS) - 1) // most)] for peak in peaks)


def depth_svg(depth: DepthOverTime, style: str = STYLE) -> str:
    """A panel for each queue: its open jobs over time, stacked by where they stood.

    ``style`` is the picture's own; a page that it stands in may have one for all of its pictures.
    """
    queues = sorted({queue for queue, _ in depth.counts})
    height = TOP + max(1, len(queues)) * (PANEL + GAP)
    title = (
        f"Open jobs from {depth.since.isoformat(timespec='seconds')} "
        f"to {depth.until.isoformat(timespec='seconds')}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{style}</style>" if style else "",
        *_legend(),
    ]
    for number, queue in enumerate(queues):
        parts += _panel(depth, queue, TOP + number * (PANEL + GAP))
    if not queues:
        parts.append(f'<text x="{LEFT}" y="{TOP + 20}">no job was open</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> list[str]:
    parts: list[str] = []
    for number, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + number * 110
        parts.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="20">{name}</text>')
    return parts


def _panel(depth: DepthOverTime, queue: str, top: int) -> list[str]:
    """One queue: areas from the bottom up in the order of ``STANDINGS``."""
    most = max(1, *depth.total(queue))
    below = [0] * len(depth.times)
    xs = _xs(depth)
    parts = [f'<text class="queue" x="{LEFT}" y="{top + 14}">{escape(queue)}</text>']
    top += 20
    for standing in STANDINGS:
        numbers = depth.counts.get((queue, standing))
        if numbers is None:
            continue
        above = [low + number for low, number in zip(below, numbers, strict=True)]
        points = [*_outline(xs, above, most, top), *reversed(_outline(xs, below, most, top))]
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        told = f"{escape(queue)} {standing}: at most {max(numbers):,}"
        parts.append(
            f'<polygon points="{path}" fill="{COLOURS[standing]}"><title>{told}</title></polygon>'
        )
        below = above
    bottom = top + PANEL - 20
    right = WIDTH - 10
    parts += [
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{top}" x2="{LEFT}" y2="{bottom}"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:,}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{LEFT}" y="{bottom + 16}">{depth.since:%Y-%m-%d %H:%M:%S}</text>',
        f'<text x="{right}" y="{bottom + 16}" text-anchor="end">'
        f"{depth.until:%Y-%m-%d %H:%M:%S}</text>",
    ]
    return parts


def _xs(depth: DepthOverTime) -> list[float]:
    """Where each time is, and where the window ends."""
    begin, length = micros(depth.since), max(1, micros(depth.until) - micros(depth.since))
    scale = (WIDTH - 10 - LEFT) / length
    return [round(LEFT + (micros(at) - begin) * scale, 1) for at in (*depth.times, depth.until)]


def _outline(
    xs: Sequence[float], heights: Sequence[int], most: int, top: int
) -> list[tuple[float, float]]:
    """A staircase: each height holds up to the next time."""
    points: list[tuple[float, float]] = []
    tall = PANEL - 20
    for (x, after), height in zip(pairwise(xs), heights, strict=True):
        y = round(top + tall - tall * height / most, 1)
        points += [(x, y), (after, y)]
    return points
