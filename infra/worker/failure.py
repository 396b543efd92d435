"""What is kept of an exception: short, storable and without secrets.

A handler may raise anything: an exception whose ``str`` raises, five megabytes of text, lone
surrogates, a password inside a URL.  Nothing of that may strand its job or reach the log.
"""

from __future__ import annotations

import re
import traceback
from types import TracebackType

from ...domain.limits import ERROR_CHARS_MAX

#: Only this much of a text is looked at, so that a huge one costs nothing.
TEXT_CHARS_READ = 8_000

# Every repetition is bounded and nothing stands before the word that gives a secret away: a handler
# chooses the text, and a search that tries again and again would hold up the whole process.
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A password that was not quoted for its URL may hold "@" and "/" itself.
    (re.compile(r"(://[^\s/:@?#]{0,100}):\S{1,2000}@"), r"\1:***@"),
    (re.compile(r"\b(bearer|basic)\s{1,5}[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), r"\1 ***"),
    (
        re.compile(
            r"((?:password|passwd|pwd|secret|token|api[_-]?key|authorization)"
            r"[\w-]{0,40}[\"']?\s{0,5}[=:]\s{0,5})"
            r"(\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$)|[^\s,;&)}\]]+)",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
    (re.compile(r"\b(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{10,}"), "***"),
)


def describe(error: BaseException) -> str:
    """The error as it is stored: its type, its text, and where it was raised.

    At most ``ERROR_CHARS_MAX`` characters, redacted, without NUL or lone surrogates.
    """
    where = _where(error.__traceback__)
    text = redact(f"{type(error).__qualname__}: {_text(error)}")
    room = ERROR_CHARS_MAX - len(where)
    return bounded(text, room) + where


def redact(text: str) -> str:
    """``text`` with what looks like a credential replaced by ``***``."""
    text = text[:TEXT_CHARS_READ]
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def bounded(text: str, most: int) -> str:
    """``text`` made storable, and cut to ``most`` characters with a mark where it was cut."""
    text = text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else text[: most - 2] + " …"


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
