"""Typed values to JSON values and back, strictly: nothing is guessed and nothing is coerced.

| declared type                          | in JSON                                              |
|----------------------------------------|------------------------------------------------------|
| attrs class, dataclass, TypedDict      | object; unknown and missing fields are refused       |
| str, bool, int, float, None, Literal   | itself; an int may stand for a float, a bool never   |
| Optional, Union of plain types         | itself                                               |
| list, tuple, dict with str keys        | array, object                                        |
| set, frozenset                         | array, sorted; comes back as a set                   |
| Enum                                   | its value                                            |
| datetime (aware only), date            | ISO 8601 text                                        |
| timedelta                              | number of seconds                                    |
| UUID, Decimal                          | text                                                 |
| bytes                                  | Base64 text                                          |
| Any                                    | as it is: plain JSON values only                     |
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

import attrs
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.strategies import configure_union_passthrough

from ...domain.errors import InvalidValue
from .errors import shown, suggestion
from .plain import Mismatch, kind, path_of


class Refused(ValueError):
    """A value was refused at a place that the converter knows and this code does not."""

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(f"{seen} was refused. {remedy}")
        self.seen = seen
        self.remedy = remedy


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=lambda each: json.dumps(each, sort_keys=True, default=repr))


def _from_text(value: object, wanted: str, parse: Callable[[str], Any]) -> Any:
    if not isinstance(value, str):
        raise Refused(kind(value), f"give {wanted}")
    try:
        return parse(value)
    except (ValueError, InvalidOperation):
        raise Refused(f"the text {shown(value)}", f"give {wanted}") from None


def _aware(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    if parsed.utcoffset() is None:
        raise Refused(
            "a datetime without a time zone", "give an aware one, as in datetime.now(UTC)"
        )
    return parsed


def _decimal(value: str) -> Decimal:
    parsed = Decimal(value)
    if not parsed.is_finite():
        raise Refused(f"the Decimal {value[:20]}", "give a finite one, or None")
    return parsed


def _structure_datetime(value: object, _: object) -> datetime:
    parsed: datetime = _from_text(value, "a datetime", _aware)
    return parsed


def _structure_date(value: object, _: object) -> date:
    parsed: date = _from_text(value, "a date", date.fromisoformat)
    return parsed


def _structure_decimal(value: object, _: object) -> Decimal:
    parsed: Decimal = _from_text(value, "a Decimal", _decimal)
    return parsed


def _structure_uuid(value: object, _: object) -> UUID:
    parsed: UUID = _from_text(value, "a UUID", UUID)
    return parsed


def _structure_bytes(value: object, _: object) -> bytes:
    parsed: bytes = _from_text(
        value, "Base64 text", lambda text: base64.b64decode(text, validate=True)
    )
    return parsed


def _structure_timedelta(value: object, _: object) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(kind(value), "give a timedelta")
    return timedelta(seconds=value)


def _exactly(wanted: type, name: str) -> Callable[[object, object], Any]:
    def structure(value: object, _: object) -> Any:
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise Refused(kind(value), f"give {name}")
        return value

    return structure


def _structure_float(value: object, _: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(kind(value), "give a float")
    return float(value)


#: type -> how it is called in errors, and how a value of it becomes a JSON value
_TO_JSON: dict[type, tuple[str, Callable[[Any], Any]]] = {
    datetime: ("a datetime", datetime.isoformat),
    date: ("a date", date.isoformat),
    timedelta: ("a timedelta", timedelta.total_seconds),
    UUID: ("a UUID", str),
    Decimal: ("a Decimal", str),
    bytes: ("bytes", _b64),
}
_FROM_JSON: dict[type, Callable[[object, object], Any]] = {
    datetime: _structure_datetime,
    date: _structure_date,
    timedelta: _structure_timedelta,
    UUID: _structure_uuid,
    Decimal: _structure_decimal,
    bytes: _structure_bytes,
    str: _exactly(str, "a str"),
    int: _exactly(int, "an int"),
    bool: _exactly(bool, "True or False"),
    float: _structure_float,
}
_UNTYPED_LEAVES = (*_TO_JSON, set, frozenset, Enum)


class _Strict(Converter):
    """Turns typed values to JSON only where their type is declared.

    In an undeclared place (``Any``, a bare ``dict``) a datetime would come back as a text, so it is
    left as it is there, for the check of plain values to refuse.
    """

    def unstructure(self, obj: object, unstructure_as: Any = None) -> Any:
        if unstructure_as is Any:
            unstructure_as = None
        if unstructure_as is None and isinstance(obj, _UNTYPED_LEAVES):
            return obj
        return super().unstructure(obj, unstructure_as)


def _declared(wanted: type, name: str, turn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def unstructure(value: object) -> Any:
        # A datetime is a date to Python, but not to a handler.
        right = isinstance(value, wanted) and not (wanted is date and isinstance(value, datetime))
        return turn(value) if right else Mismatch(name, kind(value))

    return unstructure


def _enum_value(value: object) -> Any:
    return value.value if isinstance(value, Enum) else Mismatch("a member of its Enum", kind(value))


def _strict() -> Converter:
    converter = _Strict(
        forbid_extra_keys=True,
        unstruct_collection_overrides={set: _sorted, frozenset: _sorted},
    )
    for wanted, (name, turn) in _TO_JSON.items():
        converter.register_unstructure_hook(wanted, _declared(wanted, name, turn))
    for wanted, structure in _FROM_JSON.items():
        converter.register_structure_hook(wanted, structure)
    converter.register_unstructure_hook(Enum, _enum_value)
    configure_union_passthrough(str | bool | int | float | None, converter)
    return converter


def _lenient() -> Converter:
    converter = Converter(unstruct_collection_overrides={set: _sorted, frozenset: _sorted})
    for wanted, (_, turn) in _TO_JSON.items():
        converter.register_unstructure_hook(wanted, turn)
    converter.register_unstructure_hook(Enum, lambda each: each.value)
    return converter


#: For arguments, in both directions.
STRICT = _strict()
#: For results, which have no declared type: by the type that a value has.
LENIENT = _lenient()


def refusal(error: BaseException, root: str, trail: tuple[str | int, ...] = ()) -> InvalidValue:
    """The first thing that a converter refused, with its path.

    The text of a foreign error may hold the value, so it is cut short.
    """
    if isinstance(error, InvalidValue):
        return error
    if isinstance(error, BaseValidationError):
        first = error.exceptions[0]
        if isinstance(first, ForbiddenExtraKeysError):
            return _unknown_field(first, root, trail)
        step = _step(first)
        if isinstance(first, KeyError) and step is not None:
            return InvalidValue(path_of(root, (*trail, step)), "a missing field", "give it")
        return refusal(first, root, trail if step is None else (*trail, step))
    path = path_of(root, trail)
    if isinstance(error, Refused):
        return InvalidValue(path, error.seen, error.remedy)
    if isinstance(error, RecursionError):
        return InvalidValue(path, "nesting without end", "flatten it, and let it not hold itself")
    return InvalidValue(path, f"{type(error).__name__}: {_short(error)}", "give a fitting value")


def _step(error: BaseException) -> str | int | None:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return note.name
        if isinstance(note, IterableValidationNote):
            return note.index if isinstance(note.index, int) else str(note.index)
    return None


def _unknown_field(
    error: ForbiddenExtraKeysError, root: str, trail: tuple[str | int, ...]
) -> InvalidValue:
    name = min(str(each) for each in error.extra_fields)
    known: list[str] = []
    if attrs.has(error.cl):
        known = [each.name for each in attrs.fields(error.cl)]
    else:
        known = list(getattr(error.cl, "__annotations__", {}))
    return InvalidValue(path_of(root, (*trail, name)), "an unknown field", suggestion(name, known))


def _short(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        return "(no text)"
    return shown(text)[1:-1]
