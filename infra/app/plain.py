"""What may stand in a JSON document that PostgreSQL, Python and every other reader agree on.

``check`` refuses with the path of the first bad field and writes nothing; ``escaped`` mends what
can be mended, for results, whose job must not be stranded by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, cast

from attrs import define, field, frozen

from ...domain.errors import InvalidValue
from ...domain.limits import ARGS_BYTES_MAX, INTEGER_MAX
from .errors import ResultRefused

DEPTH_MAX = 100

TOO_DEEP = (
    f"nesting deeper than {DEPTH_MAX}",
    "flatten it, or store it elsewhere and pass its key",
)
TOO_LARGE = "keep large data in a table or a file and pass its key"
NOT_FINITE = "JSON has no NaN and no infinities; give None, or a text"


@frozen
class Mismatch:
    """Stands where a value was not of its declared type ``wanted``, so that its path is known."""

    wanted: str
    seen: str


def kind(value: object) -> str:
    """A value as an error shows it: its type only, because the value may be large or secret."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def path_of(root: str, trail: Iterable[str | int]) -> str:
    """``args.page.tags[3]`` for a root and the steps below it."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:60]}" for step in trail)
    # The path itself must be printable whatever the keys hold.
    text = (root + "".join(steps)).replace("\0", "\\0")
    return text.encode("utf-8", "backslashreplace").decode()[:400]


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    pairs: Iterable[tuple[Any, Any]] = value.items()
    return pairs


@define
class _Checker:
    root: str
    bytes_max: int
    trail: list[str | int] = field(factory=list[str | int])
    size: int = 0

    def refuse(self, seen: str, remedy: str) -> InvalidValue:
        return InvalidValue(path_of(self.root, self.trail), seen, remedy)

    def grow(self, size: int) -> None:
        """Count bytes and stop as soon as the document is too large, before it is built."""
        self.size += size
        if self.size > self.bytes_max:
            raise InvalidValue(self.root, f"more than {self.bytes_max:,} bytes", TOO_LARGE)

    def text(self, value: str) -> None:
        if "\0" in value:
            raise self.refuse("a NUL character", "remove it; PostgreSQL cannot store it")
        if value.isascii():
            self.grow(len(value) + 3)
            return
        try:
            self.grow(len(value.encode()) + 3)
        except UnicodeEncodeError:
            raise self.refuse(
                "a lone surrogate", "decode the text properly; it is not valid Unicode"
            ) from None

    def check(self, value: Any) -> None:
        if isinstance(value, Enum):
            raise self.refuse(kind(value), "declare its type, or give its value")
        if value is None or isinstance(value, bool):
            self.grow(5)
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, int):
            if not -INTEGER_MAX <= value <= INTEGER_MAX:
                raise self.refuse("an integer beyond 2^53", "give it as a text")
            self.grow(2)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise self.refuse(repr(value), NOT_FINITE)
            self.grow(4)
        elif isinstance(value, dict | list | tuple):
            self.inside(value)
        elif isinstance(value, Mismatch):
            raise self.refuse(value.seen, f"give {value.wanted}")
        else:
            raise self.refuse(
                kind(value), "give text, numbers, lists and dicts, or declare its type"
            )

    def inside(self, value: Any) -> None:
        if len(self.trail) >= DEPTH_MAX:
            raise InvalidValue(path_of(self.root, self.trail[:3]), *TOO_DEEP)
        self.grow(2)
        if not isinstance(value, dict):
            for index, each in enumerate(value):
                self.trail.append(index)
                self.check(each)
                self.trail.pop()
            return
        for key, each in _pairs(value):
            if not isinstance(key, str) or isinstance(key, Enum):
                raise self.refuse(f"{kind(key)} as a key", "JSON keys are texts; give a str")
            self.trail.append(key)
            self.text(key)
            self.check(each)
            self.trail.pop()


def check(root: str, value: object, bytes_max: int = ARGS_BYTES_MAX) -> None:
    """Raise InvalidValue, with the path below ``root``, for what no JSON document should hold.

    That is NUL and lone surrogates (in keys too), NaN and infinities, integers beyond 2^53, keys
    that are no text, nesting beyond 100, objects of any other type, and more than ``bytes_max``.
    """
    _Checker(root, bytes_max).check(value)


def escape(text: str) -> str:
    r"""``text`` made storable: NUL and lone surrogates as the characters ``\u0000``, ``\ud800``."""
    if "\0" in text:
        text = text.replace("\0", "\\u0000")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def escaped(value: Any, depth: int = 0) -> object:
    """A result made storable, or ResultRefused.

    Texts are escaped, integers beyond 2^53 become texts, integer keys too (as ``json`` does).
    """
    if depth > DEPTH_MAX:
        raise ResultRefused("result", *TOO_DEEP)
    if value is None or isinstance(value, bool):
        return value
    match value:
        case str():
            return escape(value)
        case int():
            return value if -INTEGER_MAX <= value <= INTEGER_MAX else str(value)
        case float():
            if not math.isfinite(value):
                raise ResultRefused("result", repr(value), NOT_FINITE)
            return value
        case list() | tuple():
            return _escaped_list(cast(list[object], value), depth + 1)
        case dict():
            return _escaped_dict(cast(dict[object, object], value), depth + 1)
        case _:
            raise ResultRefused("result", kind(value), "return what JSON can hold, or None")


def _escaped_list(items: Iterable[object], depth: int) -> list[object]:
    return [escaped(each, depth) for each in items]


def _escaped_dict(pairs: Mapping[object, object], depth: int) -> dict[str, object]:
    return {_key(key): escaped(each, depth) for key, each in pairs.items()}


def _key(key: object) -> str:
    if isinstance(key, str):
        return escape(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise ResultRefused("result", f"{kind(key)} as a key", "JSON keys are texts; give a str")
