"""Plain arguments are written directly, with the documents and refusals of the long way."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leasebook.domain.errors import InvalidValue
from leasebook.domain.limits import ARGS_BYTES_MAX
from leasebook.infra.app import arguments
from leasebook.infra.app.handlers import Face, read
from leasebook.infra.app.plain import DEPTH_MAX

from .ground import PageChanged


class Word(StrEnum):
    """A text that is none to JSON."""

    A = "a"


class Number(IntEnum):
    """A number that is none to JSON."""

    ONE = 1


class Text(str):
    """A text whose class may mean something."""


def integer(v: int) -> None: ...
def real(v: float) -> None: ...
def word(v: str) -> None: ...
def flag(v: bool) -> None: ...
def maybe(v: int | None) -> None: ...
def several(v: str | float | bool) -> None: ...
def anything(v: Any) -> None: ...
def bare_dict(v: dict) -> None: ...  # type: ignore[type-arg]
def bare_list(v: list) -> None: ...  # type: ignore[type-arg]
def payload(v: dict[str, Any]) -> None: ...
def counts(v: dict[str, int]) -> None: ...
def rows(v: list[dict[str, float | None]]) -> None: ...
def words(v: list[str]) -> None: ...


HANDLERS: list[Callable[..., None]] = [
    integer, real, word, flag, maybe, several, anything,
    bare_dict, bare_list, payload, counts, rows, words,
]  # fmt: skip
FACES = [read(handler, False, globals()) for handler in HANDLERS]


def numbers(items: list[int]) -> None: ...
def payloads(items: list[dict[str, Any]]) -> None: ...
def maybes(items: list[str | None]) -> None: ...


GROUPED = [read(handler, True, globals()) for handler in (numbers, payloads, maybes)]

ODD = st.sampled_from(
    [
        Word.A, Number.ONE, Text("t"), "\0", "a\0b", "\ud800", "\U0001f600", '"\\\n\x7f\u2028',
        2**53, 2**53 + 1, -(2**53), -(2**53) - 1, math.nan, math.inf, -math.inf, -0.0, 1e300, 1e16,
        Decimal("1.5"), UUID(int=1), b"b", (1, 2), {1, 2}, PageChanged("a.md"), object(),
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | ODD
KEYS = st.text() | st.sampled_from([1, None, Word.A, Text("t"), "\0", "\ud800"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def long_way(face: Face, value: object) -> str:
    """The document as it comes of every step."""
    return arguments.encode(face, arguments.bind(face, (value,), {}))


def long_item(face: Face, item: object) -> str:
    """The same of an item of a group."""
    return arguments.encode_item(attrs.evolve(face, direct=None), item)


def answer(write: Callable[[Face, object], str], face: Face, value: object) -> str:
    """The document, or the words of the refusal."""
    try:
        return write(face, value)
    except InvalidValue as refused:
        return f"refused: {refused}"


def either_way(face: Face, value: object) -> str:
    """The document as an enqueue makes it."""
    return arguments.document(face, (value,), {})


@given(st.sampled_from(FACES), VALUES)
@example(FACES[6], {"a": [1, 2.5, None, True, "t", {"b": {}}]})
def test_both_ways_say_the_same(face: Face, value: object) -> None:
    assert answer(either_way, face, value) == answer(long_way, face, value)


@given(VALUES)
def test_what_is_written_directly_is_what_the_long_way_writes(value: object) -> None:
    for face in FACES:
        assert face.direct is not None
        written = face.direct((value,))
        if written is not None:
            assert written == long_way(face, value)


@given(VALUES)
def test_items_are_written_directly_as_the_long_way_writes_them(value: object) -> None:
    for face in GROUPED:
        assert face.direct is not None
        assert answer(arguments.encode_item, face, value) == answer(long_item, face, value)


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [30, 39, 40, 41, DEPTH_MAX - 2, DEPTH_MAX - 1, DEPTH_MAX, 5_000])
def test_deep_values_are_left_to_the_long_way(depth: int) -> None:
    face = FACES[6]
    assert answer(either_way, face, nested(depth)) == answer(long_way, face, nested(depth))


def test_a_value_that_holds_itself_is_refused() -> None:
    face, value = FACES[6], nested(0)
    value.append(value)
    assert answer(either_way, face, value) == answer(long_way, face, value)
    assert answer(either_way, face, value).startswith("refused")


@pytest.mark.parametrize("text", ["x", "ä", "\U0001f600"])
@pytest.mark.parametrize("more", [-20, -8, 0])
def test_large_values_are_left_to_the_long_way(text: str, more: int) -> None:
    value = text * (ARGS_BYTES_MAX // len(text.encode()) + more)
    assert answer(either_way, FACES[2], value) == answer(long_way, FACES[2], value)


def test_plain_types_go_directly_and_others_do_not() -> None:
    def several(a: int, b: str = "x") -> None: ...
    def by_name(a: int, *, b: int) -> None: ...
    def typed(page: PageChanged) -> None: ...

    face = read(several, False, globals())
    assert face.direct is not None
    assert face.direct((1, "y")) == '{"a":1,"b":"y"}'
    assert face.direct((1,)) is None
    assert arguments.document(face, (1,), {}) == '{"a":1,"b":"x"}'
    assert arguments.document(face, (1,), {"b": "z"}) == '{"a":1,"b":"z"}'
    assert read(by_name, False, globals()).direct is None
    assert read(typed, False, globals()).direct is None
    assert read(idle, False, globals()).direct is not None
    assert arguments.document(read(idle, False, globals()), (), {}) == "{}"


def idle() -> None: ...
