"""The checks that come before anything is written."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from leasebook.domain import Group, InvalidValue
from leasebook.domain.limits import check_priority, check_seconds, check_text, check_time
from tests.support.lives import START

#: Too long even to be shown: Python refuses to write it out.
HUGE = pytest.param(10**5_000, id="huge")


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("", "empty or blank"),
        (" \t\n", "empty or blank"),
        ("a\0b", "NUL"),
        ("a\ud800", "lone surrogate"),
        ("ä" * 5, "10 bytes"),
        (None, "a NoneType"),
        (b"a", "a bytes"),
    ],
)
def test_texts(value: Any, seen: str) -> None:
    assert check_text("queue", "ä" * 4, 8) == "ä" * 4
    with pytest.raises(InvalidValue) as refused:
        check_text("queue", value, 9)
    assert refused.value.field == "queue"
    assert seen in refused.value.seen
    assert str(refused.value).startswith("queue: ")


@pytest.mark.parametrize("value", [-1, 10, True, 5.0, "5", None, HUGE])
def test_priorities(value: Any) -> None:
    assert [check_priority(each) for each in (0, 9)] == [0, 9]
    with pytest.raises(InvalidValue):
        check_priority(value)


def test_times_know_their_zone() -> None:
    assert check_time("run_at", START) == START
    for value in (datetime(2026, 3, 1), "2026-03-01", None):
        with pytest.raises(InvalidValue):
            check_time("run_at", value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [-0.1, 1e10, float("nan"), float("inf"), True, "1", HUGE])
def test_seconds(value: Any) -> None:
    assert check_seconds("timeout", 5) == 5.0
    with pytest.raises(InvalidValue):
        check_seconds("timeout", value)


@pytest.mark.parametrize("value", [0, 1_001, 2.5, True, "3", None])
def test_the_size_of_a_group_is_a_whole_number(value: Any) -> None:
    with pytest.raises(InvalidValue) as refused:
        Group(1, 10, value)
    assert refused.value.field == "max_size"
    assert "second" not in str(refused.value)


@pytest.mark.parametrize("field", ["window", "max_hold"])
def test_the_times_of_a_group_are_seconds(field: str) -> None:
    good: dict[str, float] = {"window": 1, "max_hold": 10}
    with pytest.raises(InvalidValue) as refused:
        Group(**good | {field: -1})  # type: ignore[arg-type]
    assert refused.value.field == field
