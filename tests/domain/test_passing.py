"""Which keys a worker leaves alone, for how long, and when it waits for their producers."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from leasebook.domain.passing import (
    KEYS_MAX,
    PASS_SECONDS_MAX,
    PATIENCE_SECONDS_MAX,
    VAIN_SECONDS_MAX,
    Passing,
)

START = datetime.fromisoformat("2030-01-01T00:00:00+00:00")

pytestmark = pytest.mark.acceptance("Q14")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tried(keys: Passing[str], seconds: float, every: float = 0.05) -> list[float]:
    """Try key "k" as ticks do, in vain, for so long; when its producers were to be waited for.

    A tick knows the time of the one before it only, and tries what it does not leave out.
    """
    waits: list[float] = []
    last, now = 0.0, 0.0
    while now < seconds:
        if (wanted := keys.impatient(at(last))) is not None:
            assert wanted[0] == "k"
            waits.append(now)
            keys.waited("k", None, at(last))
        if "k" not in keys.keys(at(now)):
            keys.refused(["k"], at(now))
        last, now = now, now + every
    return waits


def test_a_key_is_left_alone_longer_each_time() -> None:
    keys, now, pauses = Passing[str](), 0.0, list[float]()
    for _ in range(6):
        keys.refused(["k"], at(now))
        pause = 0.0
        while "k" in keys.keys(at(now + pause)) and pause < 0.9:
            pause += 0.01
        pauses.append(pause)
        now += pause
    assert pauses == sorted(pauses)
    assert pauses[-1] <= PASS_SECONDS_MAX


def test_producers_that_leave_no_gap_are_waited_for_within_seconds() -> None:
    first, *later = tried(Passing[str](), 120.0)
    assert 1.0 <= first <= 3.0
    gaps = [round(two - one, 3) for one, two in zip([first, *later], later, strict=False)]
    assert gaps == sorted(gaps), "a wait in vain makes the next one rarer"
    assert gaps[-1] <= VAIN_SECONDS_MAX + PASS_SECONDS_MAX + 0.1


def test_a_key_that_is_settled_is_tried_at_once() -> None:
    keys = Passing[str]()
    for now in (0.0, 0.5, 1.0):
        keys.refused(["k"], at(now))
    assert keys.keys(at(1.05)) == ("k",), "it was refused just now"
    assert keys.impatient(at(1.05)) == ("k", 0.2)
    keys.waited("k", 7, at(1.05))
    assert keys.keys(at(1.05)) == ()
    assert keys.settled == {"k": 7}


def test_a_key_that_others_have_served_is_waited_for_once() -> None:
    keys = Passing[str]()
    keys.refused(["k"], at(0))
    assert keys.impatient(at(5)) == ("k", 0.2)
    keys.waited("k", 7, at(5))
    assert keys.impatient(at(500)) is None


def test_what_is_passed_over_is_tried_on_and_on() -> None:
    """A worker that was busy for a while had left it alone, for ever where nobody is waited for."""
    parents = Passing[str]()
    parents.refused(["p"], at(0.0))
    assert parents.keys(at(0.0)) == ("p",)
    assert parents.keys(at(5.0)) == ()
    for now in range(5, 60):
        parents.refused(["p"], at(now))
        assert parents.keys(at(now)) == ("p",)
        assert parents.keys(at(now + PASS_SECONDS_MAX)) == ()


def test_a_key_whose_producers_have_ended_waits_for_no_other() -> None:
    """Others whose producers stay are waited for in vain meanwhile, and for a tenth of the time."""
    keys, others = Passing[str](), [f"x{number}" for number in range(8)]
    now, began, ended = 0.0, 20.0, 22.0
    while now < 60.0:
        if (wanted := keys.impatient(at(now))) is not None:
            keys.waited(wanted[0], None, at(now))
            now += wanted[1]
        passed = keys.keys(at(now))
        keys.refused([name for name in others if name not in passed], at(now))
        if now >= began and "c" not in passed:
            if now >= ended:
                break
            keys.refused(["c"], at(now))
        now += 0.05
    assert now <= ended + PASS_SECONDS_MAX + PATIENCE_SECONDS_MAX + 0.1


def test_patience_grows_and_is_bounded() -> None:
    keys = Passing[str]()
    keys.refused(["k"], at(0))
    seen: list[float] = []
    for minute in range(1, 9):
        wanted = keys.impatient(at(60.0 * minute))
        assert wanted is not None
        seen.append(wanted[1])
        keys.waited("k", None, at(60.0 * minute))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.2, PATIENCE_SECONDS_MAX)


def test_who_is_served_is_forgotten_and_no_more_are_remembered_than_fit() -> None:
    keys = Passing[str]()
    keys.refused(["k"], at(0))
    keys.served(["k", "unknown"])
    assert keys.keys(at(0)) == ()
    keys.refused((str(number) for number in range(KEYS_MAX + 5)), at(0))
    assert len(keys.keys(at(0))) == KEYS_MAX


def test_many_keys_in_use_take_no_more_of_the_time_than_one() -> None:
    keys = Passing[str]()
    names = [f"k{number}" for number in range(100)]
    waits, now = 0, 0.0
    while now < 60.0:
        passed = keys.keys(at(now))
        keys.refused([name for name in names if name not in passed], at(now))
        if (wanted := keys.impatient(at(now))) is not None:
            keys.waited(wanted[0], None, at(now))
            waits += 1
            now += wanted[1]
        now += 0.05
    assert 1 < waits <= 60.0 / (PATIENCE_SECONDS_MAX * 9) + 1
