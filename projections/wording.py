"""Durations and texts as people read them."""

from __future__ import annotations

from datetime import timedelta

ERROR_CHARS_SHOWN = 200


def duration(span: timedelta) -> str:
    """A span of time in at most two units: ``25 ms``, ``1.9 s``, ``2 min 3 s``, ``1 d 4 h``.

    Rounded down, so that nothing seems to have lasted longer than it did; below zero it is 0 ms.
    """
    milliseconds = max(0, span // timedelta(milliseconds=1))
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds // 100 / 10:g} s"
    seconds = milliseconds // 1_000
    for unit, size, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60)):
        if seconds >= size:
            return _two(seconds, unit, size, smaller, part)
    return _two(seconds, "min", 60, "s", 1)


def _two(seconds: int, unit: str, size: int, smaller: str, part: int) -> str:
    rest = seconds % size // part
    return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")


def count(number: int, noun: str) -> str:
    """``1 item``, ``3 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def one_line(error: str) -> str:
    """The telling line of an error: of a traceback its last, else the first, bounded."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return "no error text"
    line = lines[-1] if lines[0].startswith("Traceback ") else lines[0]
    if len(line) > ERROR_CHARS_SHOWN:
        return line[: ERROR_CHARS_SHOWN - 1] + "…"
    return line
