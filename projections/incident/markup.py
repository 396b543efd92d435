"""HTML by small functions, each of which escapes what it is given unless it is ``Html`` already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TypeAlias

from ..replay import clock


class Html(str):
    """Text that is HTML, and is not escaped again."""

    __slots__ = ()


Cell: TypeAlias = object


def html(value: Cell) -> Html:
    """A value as HTML: text escaped, without what is unprintable; nothing for None."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html("")
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return Html(escape("".join(each if each.isprintable() else " " for each in text)))


def tag(name: str, *inside: Cell, **attributes: str) -> Html:
    """An element; ``class_`` stands for ``class``, ``_`` in other names for ``-``."""
    named = {
        "class" if each == "class_" else each.replace("_", "-"): value
        for each, value in attributes.items()
    }
    told = "".join(f' {each}="{escape(value)}"' for each, value in named.items())
    return Html(f"<{name}{told}>{''.join(map(html, inside))}</{name}>")


def stamp(at: datetime | None) -> Html:
    """A moment, for readers and for programs."""
    if at is None:
        return Html("")
    return tag("time", clock.stamp(at), datetime=at.astimezone(UTC).isoformat())


def scrolling(label: str, *inside: Cell) -> Html:
    """Something wide, which scrolls by itself; ``label`` is for those who do not see it."""
    return tag("div", *inside, class_="scroll", role="region", aria_label=label, tabindex="0")


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], most: int) -> Html:
    """A table with its caption, at most ``most`` rows of it; the rest is counted."""
    numbers = [
        bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        for index in range(len(columns))
    ]
    head = tag("tr", *(_heading(*each) for each in zip(columns, numbers, strict=True)))
    body = Html("".join(tag("tr", *_cells(row, numbers)) for row in rows[:most]))
    whole = tag(
        "table", tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", body)
    )
    made = scrolling(caption, whole)
    if len(rows) > most:
        left = f"… and {len(rows) - most:,} more, which leasebook replay shows."
        made = Html(made + tag("p", left, class_="more"))
    return made


def _heading(name: str, number: bool) -> Html:
    return tag("th", name, scope="col", class_="number" if number else "text")


def _cells(row: Sequence[Cell], numbers: Sequence[bool]) -> Iterable[Html]:
    for value, number in zip(row, numbers, strict=True):
        yield tag("td", value, class_="number") if number else tag("td", value)
