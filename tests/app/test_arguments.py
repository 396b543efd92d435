"""What arguments and results may hold, and how what was refused is named."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from attrs import field, frozen

from leasebook.domain.errors import InvalidValue
from leasebook.domain.limits import ARGS_BYTES_MAX, RESULT_BYTES_MAX
from leasebook.infra.app import arguments, results
from leasebook.infra.app.errors import ResultRefused
from leasebook.infra.app.handlers import Face, read

from .ground import ID, Author, Colour, PageChanged


@frozen
class Tree:
    """Something that holds more of itself."""

    name: str
    when: datetime
    kids: list[Tree] = field(factory=lambda: list[Tree]())


NOW = datetime(2026, 3, 29, 1, 30, 0, 123_456, UTC)


def everything(
    page: PageChanged,
    tree: Tree,
    colours: set[Colour],
    ids: dict[str, UUID],
    day: date,
    wait: timedelta,
    blob: bytes,
    maybe: int | str | None,
    mode: Literal["fast", "slow"],
    pair: tuple[int, str],
    any_value: Any,
    price: Decimal = Decimal("1.10"),
) -> None: ...


VALUES: dict[str, Any] = {
    "page": PageChanged(
        "ä\U0001f600\n", Author("Eve", 7), ["x"], NOW, Decimal("0.30"), Colour.BLUE
    ),
    "tree": Tree("root", NOW, [Tree("leaf", NOW)]),
    "colours": {Colour.RED, Colour.BLUE},
    "ids": {"a": ID},
    "day": date(2026, 2, 28),
    "wait": timedelta(days=1, microseconds=1),
    "blob": b"\x00\xff",
    "maybe": None,
    "mode": "fast",
    "pair": (1, "x"),
    "any_value": {"list": [1, 2.5, None, True, "t"], "deep": {"er": []}},
}


def face(handler: Any) -> Face:
    """The face of a handler without a group."""
    return read(handler, False, globals())


def text(handler: Any, **values: object) -> str:
    """The document of arguments."""
    known = face(handler)
    return arguments.encode(known, arguments.bind(known, (), values))


def test_what_goes_in_comes_out() -> None:
    known = face(everything)
    document = arguments.encode(known, arguments.bind(known, (), VALUES))
    assert arguments.decode(known, document) == {**VALUES, "price": Decimal("1.10")}
    # Canonical: the same values give the same text.
    assert document == arguments.encode(known, arguments.decode(known, document))
    assert document == json.dumps(
        json.loads(document), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def test_arguments_by_name_are_json_values_or_objects() -> None:
    known = face(everything)
    document = arguments.encode(known, arguments.bind(known, (), VALUES))
    assert arguments.encode_named(known, json.loads(document)) == document
    assert (
        arguments.encode_named(known, {**json.loads(document), "page": VALUES["page"]}) == document
    )


def publish(page: PageChanged, count: int = 1) -> None: ...


def free(value: Any) -> None: ...


def keyed(value: dict[int, str]) -> None: ...


def times(value: list[datetime]) -> None: ...


def nested(depth: int) -> list[Any]:
    """A list inside a list inside a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


class Odd(Enum):
    """An Enum with a value that JSON has not."""

    NAN = math.nan


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "NUL": (publish, {"page": PageChanged("a\0b")}, "args.page.path"),
    "NUL in a key": (free, {"value": {"a\0": 1}}, r"args.value.a\0"),
    "surrogate": (publish, {"page": PageChanged("a\ud800")}, "args.page.path"),
    "surrogate in a list": (publish, {"page": PageChanged("a", tags=["x", "\udfff"])}, "tags[1]"),
    "surrogate in a key": (free, {"value": {"\ud800": 1}}, "args.value"),
    "NaN": (publish, {"page": PageChanged("a", score=math.nan)}, "args.page.score"),
    "infinity": (publish, {"page": PageChanged("a", score=-math.inf)}, "args.page.score"),
    "NaN in a list": (free, {"value": [1, [math.nan]]}, "args.value[1][0]"),
    "Decimal NaN": (publish, {"page": PageChanged("a", price=Decimal("NaN"))}, "args.page.price"),
    "Decimal infinity": (
        publish,
        {"page": PageChanged("a", price=Decimal("-Infinity"))},
        "args.page.price",
    ),
    "huge int": (publish, {"page": PageChanged("a", count=2**53 + 1)}, "args.page.count"),
    "huge negative int": (free, {"value": {"n": -(2**53) - 1}}, "args.value.n"),
    "gigantic int": (free, {"value": 10**5000}, "args.value"),
    "naive datetime": (publish, {"page": PageChanged("a", when=datetime(2026, 1, 1))}, "page.when"),
    "naive datetime in a list": (times, {"value": [NOW, datetime(2026, 1, 1)]}, "args.value[1]"),
    "a text for an int": (publish, {"page": PageChanged("a"), "count": "1"}, "args.count"),
    "a bool for an int": (publish, {"page": PageChanged("a"), "count": True}, "args.count"),
    "a float for an int": (publish, {"page": PageChanged("a"), "count": 1.0}, "args.count"),
    "a bool for a float": (publish, {"page": PageChanged("a", score=True)}, "args.page.score"),
    "an int for a text": (publish, {"page": PageChanged(5)}, "args.page.path"),  # type: ignore[arg-type]
    "a text for a datetime": (
        publish,
        {"page": PageChanged("a", when="2026-01-01T00:00:00Z")},  # type: ignore[arg-type]
        "args.page.when",
    ),
    "a float for a Decimal": (publish, {"page": PageChanged("a", price=1.1)}, "args.page.price"),  # type: ignore[arg-type]
    "a text for an Enum": (publish, {"page": PageChanged("a", colour="red")}, "args.page.colour"),  # type: ignore[arg-type]
    "a dict for a class": (publish, {"page": {"path": "a"}}, "args.page"),
    "another class": (publish, {"page": Author("a")}, "args.page"),
    "another class inside": (publish, {"page": PageChanged("a", author=3)}, "args.page"),  # type: ignore[arg-type]
    "missing": (publish, {}, "args.page"),
    "unknown": (publish, {"page": PageChanged("a"), "cuont": 1}, "args.cuont"),
    "int keys": (keyed, {"value": {1: "a"}}, "args.value"),
    "datetime without a type": (free, {"value": {"at": NOW}}, "args.value.at"),
    "Decimal without a type": (free, {"value": Decimal(1)}, "args.value"),
    "bytes without a type": (free, {"value": b"x"}, "args.value"),
    "set without a type": (free, {"value": {1, 2}}, "args.value"),
    "Enum without a type": (free, {"value": Colour.RED}, "args.value"),
    "object": (free, {"value": [object()]}, "args.value[0]"),
    "too deep": (free, {"value": nested(200)}, "args.value"),
    "far too deep": (free, {"value": nested(100_000)}, "args.value"),
    "circle": (free, {"value": circle()}, "args.value"),
}


@pytest.mark.case("C42", "C43")
@pytest.mark.acceptance("P01")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_by_its_path(name: str) -> None:
    handler, values, path = REFUSED[name]
    with pytest.raises(InvalidValue) as caught:
        text(handler, **values)
    assert path in caught.value.field
    assert len(str(caught.value)) < 500
    str(caught.value).encode()


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(InvalidValue, match="'count'"):
        text(publish, page=PageChanged("a"), cuont=1)
    known = face(publish)
    with pytest.raises(InvalidValue, match=r"args\.page\.auhtor.*'author'"):
        arguments.encode_named(known, {"page": {"path": "a", "auhtor": {"name": "x"}}})
    with pytest.raises(InvalidValue, match=r"args\.page\.author\.name: a missing field"):
        arguments.encode_named(known, {"page": {"path": "a", "author": {}}})
    with pytest.raises(InvalidValue, match=r"args\.pgae.*'page'"):
        arguments.encode_named(known, {"pgae": {}, "page": {"path": "a"}})


@pytest.mark.case("C16")
def test_five_megabytes_pass_and_twenty_are_refused_briefly() -> None:
    assert len(text(publish, page=PageChanged("x" * 5_000_000))) > 5_000_000
    for value in ("x" * 20_000_000, "\x01" * (ARGS_BYTES_MAX // 3), "ä" * (ARGS_BYTES_MAX - 100)):
        with pytest.raises(InvalidValue, match="more than 10,485,760 bytes") as caught:
            text(publish, page=PageChanged(value))
        assert len(str(caught.value)) < 200


def test_an_older_handler_says_what_it_does_not_know() -> None:
    known = face(publish)
    for document, path in (
        ('{"page":{"path":"a","new":1}}', "args.page.new"),
        ('{"page":{"path":"a"},"new":1}', "args.new"),
        ("{}", "args.page"),
        ("[]", "args"),
    ):
        with pytest.raises(InvalidValue) as caught:
            arguments.decode(known, document)
        assert caught.value.field == path
    # A default that was added later fills in.
    assert arguments.decode(known, '{"page":{"path":"a"}}') == {"page": PageChanged("a")}


@pytest.mark.case("C42", "C43")
def test_results_are_escaped_so_that_no_job_is_stranded() -> None:
    given = {"a\0": "x\0y", "b\ud800": ["\udfff"], "n": 2**60, 1: {Colour.RED}, "at": NOW}
    assert json.loads(results.encode_result(given)) == {
        "a\\u0000": "x\\u0000y",
        "b\\ud800": ["\\udfff"],
        "n": str(2**60),
        "1": ["red"],
        "at": NOW.isoformat(),
    }
    assert results.encode_result(None) == "null"
    assert json.loads(results.encode_result(PageChanged("a")))["author"] == {
        "name": "Ada",
        "age": 30,
    }
    assert json.loads(results.encode_result([ID, b"x", Decimal("1.10"), True])) == [
        str(ID), "eA==", "1.10", True,
    ]  # fmt: skip


class Hostile:
    """An object of which everything raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


BAD_RESULTS: dict[str, Any] = {
    "nan": math.nan,
    "infinity": [math.inf],
    "negative infinity": {"a": -math.inf},
    "object": object(),
    "tuple key": {(1, 2): 3},
    "lambda": lambda: None,
    "NaN in an Enum": Odd.NAN,
    "large": "x" * (RESULT_BYTES_MAX + 1),
    "deep": nested(200),
    "very deep": nested(100_000),
    "circle": circle(),
    "gigantic": 10**5000,
}


@pytest.mark.case("C43")
@pytest.mark.parametrize("name", BAD_RESULTS)
def test_a_result_that_cannot_be_kept_is_refused_by_type(name: str) -> None:
    with pytest.raises(ResultRefused) as caught:
        results.encode_result(BAD_RESULTS[name])
    assert caught.value.code == "result_refused"
    assert len(str(caught.value)) < 300


def test_a_hostile_result_is_refused_too() -> None:
    with pytest.raises(ResultRefused):
        results.encode_result(Hostile())
