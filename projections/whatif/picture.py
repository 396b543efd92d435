"""What was beside what would have been: open jobs over time, and how long starts waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..replay.clock import micros, span
from ..replay.depth import DepthOverTime
from ..wording import duration

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 200, 90, 890, 40, 60
#: Told apart by colour, and by the dashes.
LINES = (("recorded", "#0072b2", ""), ("with the settings", "#d55e00", "6 4"))
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}"
    ".title{font-weight:600}.axis{stroke:#999;stroke-width:1}"
    "polyline{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){svg{background:#111}text{fill:#ddd}}"
)
Points = list[tuple[float, float]]


def comparison_svg(
    depths: tuple[DepthOverTime, DepthOverTime], waits: tuple[Sequence[int], Sequence[int]]
) -> str:
    """Two panels: the depth of both over the window, and the waits of both in order of length."""
    depth, other = depths
    begin, whole = micros(depth.since), max(1, micros(depth.until) - micros(depth.since))
    most = max(1, *depth.total(), *other.total())
    curves = [_staircase(each, begin, whole, most) for each in depths]
    longest = max([1, *waits[0], *waits[1]])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{TOP + 2 * (PANEL + GAP)}" role="img">',
        "<title>Open jobs over time and waits, as recorded and with the settings</title>",
        f"<style>{STYLE}</style>",
        *_legend(),
        *_panel(TOP, "open jobs", f"{most:,}", curves),
        *_ends(TOP, f"{depth.since:%Y-%m-%d %H:%M:%S}", f"{depth.until:%Y-%m-%d %H:%M:%S}"),
    ]
    top = TOP + PANEL + GAP
    ordered = [_curve(sorted(each), longest) for each in waits]
    parts += _panel(top, "waits of all starts, the shortest first", _length(longest), ordered)
    parts += _ends(top, "shortest", "longest")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _length(microseconds: int) -> str:
    return duration(span(microseconds))


def _staircase(depth: DepthOverTime, begin: int, whole: int, most: int) -> Points:
    times = [*(micros(at) for at in depth.times), micros(depth.until)]
    points: Points = []
    for (at, after), number in zip(pairwise(times), depth.total(), strict=True):
        points += [((each - begin) / whole, number / most) for each in (at, after)]
    return points


def _curve(waits: Sequence[int], longest: int) -> Points:
    last = max(1, len(waits) - 1)
    # More points than pixels show nothing more.
    step = max(1, len(waits) // 800)
    chosen = sorted({*range(0, len(waits), step), len(waits) - 1} if waits else ())
    return [(index / last, waits[index] / longest) for index in chosen]


def _legend() -> Iterator[str]:
    for number, (name, colour, dashes) in enumerate(LINES):
        x = LEFT + number * 150
        yield (
            f'<line x1="{x}" y1="16" x2="{x + 30}" y2="16" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/>'
        )
        yield f'<text x="{x + 36}" y="20">{name}</text>'


def _panel(top: int, title: str, most: str, curves: Sequence[Points]) -> Iterator[str]:
    floor = top + PANEL
    yield f'<text class="title" x="{LEFT}" y="{top + 10}">{title}</text>'
    yield f'<text x="{LEFT - 6}" y="{top + 26}" text-anchor="end">{most}</text>'
    yield f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
    yield f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{RIGHT}" y2="{floor}"/>'
    for (name, colour, dashes), points in zip(LINES, curves, strict=True):
        path = " ".join(
            f"{LEFT + x * (RIGHT - LEFT):.1f},{floor - y * (PANEL - 20):.1f}" for x, y in points
        )
        yield (
            f'<polyline points="{path}" stroke="{colour}" stroke-dasharray="{dashes}">'
            f"<title>{name}</title></polyline>"
        )


def _ends(top: int, first: str, last: str) -> Iterator[str]:
    y = top + PANEL + 16
    yield f'<text x="{LEFT}" y="{y}">{first}</text>'
    yield f'<text x="{RIGHT}" y="{y}" text-anchor="end">{last}</text>'
