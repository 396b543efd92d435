"""How large a thing may be, and the checks that say so before anything is written.

Lengths of names and keys are in bytes of UTF-8, because an index entry and a PostgreSQL text are
bounded in bytes.  Sizes of documents are in bytes too.
"""

from __future__ import annotations

from datetime import datetime

from .errors import InvalidValue

NAME_BYTES_MAX = 128
KEY_BYTES_MAX = 512
LABEL_BYTES_MAX = 512
ARGS_BYTES_MAX = 10 * 1024 * 1024
RESULT_BYTES_MAX = 1024 * 1024
RECEIPT_BYTES_MAX = 64 * 1024
ERROR_CHARS_MAX = 1_500
EFFECT_KEY_CHARS_MAX = 240
EFFECTS_MAX = 1_000
PRIORITY_MIN = 0
PRIORITY_MAX = 9
PRIORITY_DEFAULT = 5
#: The largest integer that every JSON reader keeps exactly (RFC 8259, section 6).
INTEGER_MAX = 2**53


def check_text(field: str, value: str, bytes_max: int) -> str:
    """Return ``value`` when it is a storable, non-blank text of at most ``bytes_max`` bytes.

    Raises InvalidValue naming ``field`` for a blank, too long or unstorable text (PostgreSQL stores
    neither NUL nor lone surrogates).
    """
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(field, f"a {type(value).__name__}", "give a str")
    if not value.strip():
        raise InvalidValue(field, "an empty or blank text", "give a text that names something")
    if "\0" in value:
        raise InvalidValue(field, "a NUL character", "remove it; PostgreSQL cannot store it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidValue(
            field, "a lone surrogate", "decode the text properly; it is not valid Unicode"
        ) from None
    if size > bytes_max:
        raise InvalidValue(field, f"{size:,} bytes", f"keep it within {bytes_max:,} bytes")
    return value


def check_effect_key(value: str) -> str:
    """Return ``value`` when it is a storable text of at most 240 characters.

    Raises InvalidValue, as ``check_text`` does.
    """
    check_text("key", value, 4 * EFFECT_KEY_CHARS_MAX)
    if len(value) > EFFECT_KEY_CHARS_MAX:
        seen = f"{len(value)} characters"
        raise InvalidValue("key", seen, f"keep it within {EFFECT_KEY_CHARS_MAX} characters")
    return value


def check_priority(value: int) -> int:
    """Return ``value`` when it is an integer from 0 (last) to 9 (first).  Raises InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue("priority", shown(value), "give an int from 0 to 9")
    if not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise InvalidValue("priority", shown(value), "give an int from 0 (last) to 9 (first)")
    return value


def check_time(field: str, value: datetime) -> datetime:
    """Return ``value`` when it knows its time zone.  Raises InvalidValue for a naive datetime."""
    if not isinstance(value, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(field, f"a {type(value).__name__}", "give an aware datetime")
    if value.utcoffset() is None:
        raise InvalidValue(
            field, "a datetime without a time zone", "give an aware one, as in datetime.now(UTC)"
        )
    return value


def check_seconds(field: str, value: float, *, least: float = 0.0, most: float = 1e9) -> float:
    """Return ``value`` in seconds when it is a number within the bounds.  Raises InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(field, shown(value), "give a number of seconds")
    if not least <= value <= most:  # NaN fails this too
        raise InvalidValue(field, shown(value), f"give seconds from {least:g} to {most:g}")
    return float(value)


def check_count(field: str, value: int, *, least: int = 0, most: int) -> int:
    """Return ``value`` when it is an integer within the bounds.  Raises InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(field, shown(value), f"give an int from {least:,} to {most:,}")
    return value


def shown(value: object) -> str:
    """``value`` for an error text, bounded; something also for what cannot be written out."""
    try:
        return repr(value)[:40]
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
