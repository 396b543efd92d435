"""Totals of waits, and depth as a picture."""

from __future__ import annotations

from itertools import count
from xml.etree import ElementTree

import pytest

from leasebook.projections.replay.depth import DepthOverTime, depth_over_time
from leasebook.projections.replay.facts import gather
from leasebook.projections.replay.picture import bars, depth_svg, highest
from leasebook.projections.replay.totals import Totals
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.replay.waits import waits
from tests.support.facts import log, started
from tests.support.lives import Life, at, job_id

SVG = "{http://www.w3.org/2000/svg}"


def odd_queue() -> DepthOverTime:
    events = count(1)
    ours = log(
        Life(events).enqueue(0, number=1, queue="<a&b>").lease(4).complete(8),
        Life(events).enqueue(2, number=2, queue="<a&b>"),
        Life(events).enqueue(2, number=3),
    )
    return depth_over_time(ours, at(0), at(8), 100)


def test_a_line_of_bars() -> None:
    depth = odd_queue()
    assert highest(depth, depth.counts["<a&b>", "queued"], 4) == [1, 2, 1, 1]
    assert bars(depth, ("<a&b>", "queued"), 8) == "▄▄██▄▄▄▄"
    assert bars(depth, ("default", "queued"), 4) == " ███"
    assert highest(depth, depth.counts["default", "queued"], 1) == [1]


def test_one_job_among_many_still_shows() -> None:
    depth = DepthOverTime(at(0), at(2), (at(0), at(1)), {("q", "queued"): (1, 1_000)}, False)
    assert bars(depth, ("q", "queued"), 2) == "▁█"


@pytest.mark.acceptance("E09")
def test_a_picture_with_a_panel_for_each_queue() -> None:
    root = ElementTree.fromstring(depth_svg(odd_queue()))
    queues = [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "queue"]
    assert queues == ["<a&b>", "default"]
    areas = [each.text for each in root.iter(f"{SVG}title")][1:]
    assert areas == [
        "<a&b> queued: at most 2",
        "<a&b> leased: at most 1",
        "default queued: at most 1",
    ]
    for polygon in root.iter(f"{SVG}polygon"):
        points = [
            tuple(map(float, point.split(","))) for point in polygon.get("points", "").split()
        ]
        assert all(70 <= x <= 890 and 0 < y < 500 for x, y in points)


def test_a_picture_of_nothing() -> None:
    text = depth_svg(depth_over_time([], at(0), at(0), 1))
    assert "no job was open" in text
    ElementTree.fromstring(text)


def test_totals_keep_the_longest() -> None:
    events = count(1)
    ours = log(
        *(Life(events).enqueue(0, number=number).lease(number) for number in range(1, 6)),
        Life(events).enqueue(0, run_at=90, number=9),
    )
    totals = Totals(2)
    for wait in waits(ours, gather([started(-9, capacity=9)]), until=at(60)):
        totals.add(wait)
    assert (totals.over, totals.going_on, totals.waits) == (5, 1, 6)
    assert [wait.job_id for wait in totals.longest] == [job_id(9), job_id(5)]
    behind = totals.causes[Cause.BEHIND]
    assert (behind.waits, behind.microseconds, behind.longest) == (4, 10_000_000, 4_000_000)
    assert totals.microseconds == 75_000_000
    none = Totals(0)
    none.add(totals.longest[0])
    assert (none.longest, none.waits) == ([], 1)
