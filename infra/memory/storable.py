"""What PostgreSQL cannot store is refused in memory too, so that tests there tell the truth."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NoReturn

from ...projections.row import Row
from ..codec import EventRow
from ..ports import DataRefused

BIGINT_MAX = 2**63 - 1


def check_event(row: EventRow) -> None:
    """Raise DataRefused for an event that cannot be stored; it names the column, not the value."""
    for column, value in row._asdict().items():
        _check(column, value)
    if row.data is not None:
        check_json("data", row.data)


def check_row(row: Row) -> None:
    """Raise DataRefused for a claim row that cannot be stored."""
    spec, state = row
    for column, value in (spec._asdict() | state._asdict()).items():
        _check(column, value)
    check_json("args", spec.args)
    for item in state.items:
        check_json("items", item)


def check_text(column: str, value: str) -> None:
    """Raise DataRefused for a NUL or a lone surrogate."""
    if "\0" in value:
        raise DataRefused(f"{column}: a NUL character cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DataRefused(f"{column}: a lone surrogate cannot be stored") from None


def check_json(column: str, text: str) -> None:
    """Raise DataRefused for what is no JSON document; NaN and infinities are none."""
    check_text(column, text)
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        raise DataRefused(f"{column}: not a JSON document") from None


def _check(column: str, value: object) -> None:
    match value:
        case str():
            check_text(column, value)
        case int() if not -BIGINT_MAX - 1 <= value <= BIGINT_MAX:
            raise DataRefused(f"{column}: an integer beyond 64 bits cannot be stored")
        case datetime() if value.utcoffset() is None:
            raise DataRefused(f"{column}: a time without a zone cannot be stored")
        case _:
            pass


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
