"""What is kept of an exception: short, storable and without secrets.

A handler may raise anything: an exception whose ``str`` raises, five megabytes of text, lone
surrogates, a password inside a URL.  Nothing of that may strand its job or reach the log.
"""

from __future__ import annotations

import traceback
from types import TracebackType

from ...domain.limits import ERROR_CHARS_MAX
from ..app.redaction import TEXT_CHARS_READ, bounded, redact


def describe(error: BaseException) -> str:
    """The error as it is stored: its type, its text, and where it was raised.

    At most ``ERROR_CHARS_MAX`` characters, redacted, without NUL or lone surrogates.
    """
    where = _where(error.__traceback__)
    text = redact(f"{type(error).__qualname__}: {_text(error)}")
    room = ERROR_CHARS_MAX - len(where)
    return bounded(text, room) + where


def _text(error: BaseException) -> str:
    for render in (str, repr):
        try:
            text = render(error)
        except BaseException:
            continue
        if text:
            return text[:TEXT_CHARS_READ]
    return "(no text)"


def _where(trace: TracebackType | None) -> str:
    """The innermost frame, as ``(file.py:12 in function)``: enough to find it, small to keep."""
    frames = traceback.extract_tb(trace, limit=-1)
    if not frames:
        return ""
    frame = frames[-1]
    name = frame.filename.replace("\\", "/").rsplit("/", 1)[-1]
    return bounded(f" ({name}:{frame.lineno} in {frame.name})", 200)
