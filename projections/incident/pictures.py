"""The waits of a window as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..replay.clock import length
from ..replay.waiting import Cause
from .over_time import WaitsOverTime

#: Colours that people with any colour vision tell apart (Okabe and Ito); True: hatched.
COLOURS = {
    Cause.DELAY: ("#999999", False),
    Cause.RETRY_WAIT: ("#e69f00", False),
    Cause.GROUP_HOLD: ("#56b4e9", False),
    Cause.BLOCKED: ("#cc79a7", False),
    Cause.PAUSED: ("#f0e442", True),
    Cause.NO_WORKER: ("#d55e00", False),
    Cause.NO_HANDLER: ("#d55e00", True),
    Cause.BUSY: ("#0072b2", False),
    Cause.BEHIND: ("#0072b2", True),
    Cause.DISPATCH: ("#009e73", False),
    Cause.UNKNOWN: ("#999999", True),
}
WIDTH, TALL, LEFT, RIGHT = 900, 220, 70, 890
LEGEND_COLUMNS, LEGEND_WIDTH, LEGEND_LINE = 6, 136, 20


def waits_svg(waits: WaitsOverTime) -> str:
    """A bar for each stretch of the window: how long a start had waited in the mean, for what."""
    causes = waits.causes
    top = 14 + LEGEND_LINE * (1 + (max(1, len(causes)) - 1) // LEGEND_COLUMNS)
    most = max(1, *(each.mean for each in waits.stretches))
    bottom = top + TALL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 24}" role="img">',
        "<title>How long starts had waited, by when they started and what for</title>",
        *_hatches(causes),
        *_legend(causes),
        f'<line class="grid" x1="{LEFT}" y1="{top}" x2="{RIGHT}" y2="{top}"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{length(most)}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        *_bars(waits, top, most),
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{RIGHT}" y2="{bottom}"/>',
        f'<text x="{LEFT}" y="{bottom + 16}">{waits.since:%Y-%m-%d %H:%M:%S}</text>',
        f'<text x="{RIGHT}" y="{bottom + 16}" text-anchor="end">'
        f"{waits.until:%Y-%m-%d %H:%M:%S}</text>",
        "</svg>",
    ]
    return "\n".join(parts)


def _fill(cause: Cause) -> str:
    colour, hatched = COLOURS[cause]
    return f"url(#{_pattern(cause)})" if hatched else colour


def _pattern(cause: Cause) -> str:
    return "hatch-" + cause.name.lower().replace("_", "-")


def _hatches(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        colour, hatched = COLOURS[cause]
        if hatched:
            yield (
                f'<defs><pattern id="{_pattern(cause)}" patternUnits="userSpaceOnUse" width="7" '
                f'height="7" patternTransform="rotate(45)"><rect width="7" height="7" '
                f'fill="{colour}"/><rect width="3" height="7" fill="#ffffff"/></pattern></defs>'
            )


def _legend(causes: Sequence[Cause]) -> Iterator[str]:
    for number, cause in enumerate(causes):
        x = LEFT + number % LEGEND_COLUMNS * LEGEND_WIDTH
        y = 6 + number // LEGEND_COLUMNS * LEGEND_LINE
        yield f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_fill(cause)}"/>'
        yield f'<text x="{x + 17}" y="{y + 10}">{cause.value}</text>'


def _bars(waits: WaitsOverTime, top: int, most: int) -> Iterator[str]:
    wide = (RIGHT - LEFT) / len(waits.stretches)
    for number, stretch in enumerate(waits.stretches):
        x, below = LEFT + number * wide, float(top + TALL)
        for cause in waits.causes:
            spent = stretch.causes.get(cause, 0)
            if not spent:
                continue
            tall = TALL * spent / stretch.waits / most
            below -= tall
            told = f"{cause.value}: {length(spent // stretch.waits)} in the mean of {stretch.waits}"
            yield (
                f'<rect class="part" x="{x + 0.5:.1f}" y="{below:.1f}" width="{wide - 1:.1f}" '
                f'height="{tall:.1f}" fill="{_fill(cause)}"><title>{told}</title></rect>'
            )
