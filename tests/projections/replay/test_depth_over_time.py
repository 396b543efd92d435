"""Depth over time: exact while there is room, the peaks when there is not."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import Recorded
from leasebook.projections.replay.at import is_open, queue_at, tally
from leasebook.projections.replay.depth import depth_over_time
from tests.support.facts import log
from tests.support.lives import Life, at, item


def small_log() -> list[Recorded]:
    events = count(1)
    return log(
        Life(events).enqueue(number=1).lease(1).complete(5),
        Life(events).enqueue(2, number=2, retries=0).lease(3).fail(4),
        Life(events).enqueue(2, number=3, queue="mail").lease(6).fail(7, delay=9),
        Life(events).open_group(item(1), seconds=3, number=4),
    )


@pytest.mark.acceptance("E09")
def test_every_change_while_there_is_room() -> None:
    depth = depth_over_time(small_log(), at(0), at(10), 100)
    assert not depth.merged
    assert depth.times == tuple(map(at, (0, 1, 2, 3, 4, 5, 6, 7)))
    assert dict(depth.counts) == {
        ("default", "grouped"): (0, 0, 0, 1, 1, 1, 1, 1),
        ("default", "queued"): (1, 0, 1, 0, 0, 0, 0, 0),
        ("default", "leased"): (0, 1, 1, 2, 1, 0, 0, 0),
        ("default", "held"): (0, 0, 0, 0, 1, 1, 1, 1),
        ("mail", "queued"): (0, 0, 1, 1, 1, 1, 0, 0),
        ("mail", "leased"): (0, 0, 0, 0, 0, 0, 1, 0),
        ("mail", "retry-wait"): (0, 0, 0, 0, 0, 0, 0, 1),
    }
    assert depth.total() == (1, 1, 3, 4, 4, 3, 3, 3)
    assert depth.total("mail") == (0, 0, 1, 1, 1, 1, 1, 1)
    assert depth.total("nosuch") == (0,) * 8


def test_the_highest_count_of_each_stretch_when_there_is_not() -> None:
    depth = depth_over_time(small_log(), at(0), at(10), 2)
    assert depth.merged
    assert depth.times == (at(0), at(5))
    assert depth.counts["default", "leased"] == (2, 0)
    assert depth.counts["mail", "leased"] == (0, 1)
    assert depth.counts["default", "queued"] == (1, 0)


def test_a_window_in_the_middle_begins_with_what_was_there() -> None:
    depth = depth_over_time(small_log(), at(3.5), at(4.5), 10)
    assert depth.times == (at(3.5), at(4))
    assert depth.counts["default", "leased"] == (2, 1)
    assert ("mail", "leased") not in depth.counts, "never in this window"


def test_empty_ends_of_a_window_are_left_out_when_asked() -> None:
    done = Life().enqueue(5).lease(6).complete(8).stream
    depth = depth_over_time(done, at(-100), at(100), 9, trim=True)
    assert (depth.since, depth.until) == (at(5), at(8))
    depth = depth_over_time(done, at(5.5), at(7), 9, trim=True)
    assert (depth.since, depth.until) == (at(5.5), at(7)), "a job is open at both ends"
    depth = depth_over_time(done, at(50), at(100), 9, trim=True)
    assert (depth.since, depth.until) == (at(50), at(100))


def test_nothing_at_all() -> None:
    depth = depth_over_time([], at(0), at(10), 10)
    assert (depth.times, dict(depth.counts), depth.total()) == ((at(0),), {}, (0,))


@pytest.mark.parametrize(("until", "points"), [(-1, 10), (10, 0)])
def test_what_is_refused(until: float, points: int) -> None:
    with pytest.raises(ValueError, match="a depth needs"):
        depth_over_time([], at(0), at(until), points)


@given(st.integers(0, 80), st.integers(0, 80), st.integers(1, 12))
def test_no_point_is_below_the_queue_at_its_time(one: int, other: int, points: int) -> None:
    since, until = (each / 8 for each in sorted((one, other)))
    depth = depth_over_time(small_log(), at(since), at(until), points)
    assert len(depth.times) <= points
    for index, time in enumerate(depth.times):
        there = tally(job for job in queue_at(small_log(), time) if is_open(job))
        counts = {place: numbers[index] for place, numbers in depth.counts.items()}
        if depth.merged:
            assert all(counts[place] >= number for place, number in there.items())
        else:
            assert {place: number for place, number in counts.items() if number} == there
