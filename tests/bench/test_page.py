"""docs/speed.md and its chart say what bench/recorded.json says."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import pytest

from bench.chart import chart
from bench.goals import GOALS, verdicts
from bench.page import BEGIN, CHART, END, PAGE, made, with_made
from bench.peers import KINDS, NOT_MEASURED, Spec
from bench.recorded import Recorded, Recording, load, save
from bench.result import TITLES, Result
from bench.rounds import PLANS, USUALLY
from bench.tables import name_of
from tests.support.source import TOP

RECORDED = load()
FACTS: tuple[str, ...] = (
    "at",
    "commit",
    "cores",
    "processor",
    "memory_gb",
    "python",
    "server_version",
    "shared_buffers",
    "fsync",
    "synchronous_commit",
)
REMEDY = 'run `make bench ARGS="--page"`, which makes it anew from bench/recorded.json'


def test_the_page_is_made_from_the_record() -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_made(page, RECORDED), REMEDY


def test_the_chart_is_made_from_the_record() -> None:
    assert CHART.read_text("utf-8") == chart(RECORDED.results), REMEDY
    ElementTree.fromstring(CHART.read_text("utf-8"))


def test_every_measure_is_recorded_with_its_machine() -> None:
    assert set(RECORDED.measures) == set(USUALLY)
    for recording in RECORDED.measures.values():
        assert set(FACTS) <= set(recording.facts)
        assert recording.facts["fsync"] == recording.facts["synchronous_commit"] == "on"


def test_a_figure_of_the_page_is_the_median_of_the_record() -> None:
    """Read back by other means than those that wrote it."""
    page = PAGE.read_text("utf-8")
    runs = RECORDED.measures["drain"].results
    mine = [each for each in runs if each.queue == "leasebook"]
    quiet = [each for each in mine if each.foreign <= 0.3] or mine
    middle = median(each.figures["jobs_per_second"] for each in quiet)
    section = page.split(f"## {TITLES['drain'].capitalize()}")[1]
    row = re.search(r"^\| leasebook \| ([\d,]+)", section, re.M)
    assert row is not None
    assert row[1] == f"{middle:,.0f}"


@pytest.mark.parametrize("measure", USUALLY)
def test_no_queue_is_missing_without_a_word(measure: str) -> None:
    recording = RECORDED.measures[measure]
    there = {each.queue for each in recording.results} | set(recording.absent)
    assert there == set(KINDS)
    page = PAGE.read_text("utf-8")
    for name in [*map(name_of, recording.absent), *NOT_MEASURED]:
        assert name in page
    assert all(recording.absent.values())


def test_goals_that_are_missed_are_said_to_be() -> None:
    runs = [
        Result("drain", "bare", 0, 1, 0.0, {"jobs_per_second": 100.0, "wal": 700.0}),
        Result("drain", "pgqueuer", 0, 1, 0.0, {"jobs_per_second": 40.0, "wal": 2_600.0}),
        Result("drain", "leasebook", 0, 1, 0.0, {"jobs_per_second": 50.0, "wal": 1_700.0}),
    ]
    told = {(each.what, each.seen): each.met for each in verdicts(runs) if each.met is not None}
    assert told == {
        ("drain, one worker", "1.25 times"): False,
        ("drain, one worker", "0.50 times"): True,
        ("WAL, enqueue and drain", "1,700 bytes"): False,
    }


def test_the_p99_is_that_of_the_queue_with_the_best_p50() -> None:
    runs = [
        Result("latency", queue, 0, 1, 0.0, {"start_p50": p50, "start_p99": p99})
        for queue, p50, p99 in (
            ("leasebook", 3.0, 9.0),
            ("oban", 3.3, 7.6),
            ("pgqueuer", 3.7, 38.0),
            ("bare", 1.0, 1.0),
        )
    ]
    told = {each.what: (each.met, each.seen) for each in verdicts(runs) if each.met is not None}
    assert told == {
        "start on an idle queue, p50": (True, "3.0 ms, the best 3.3 ms"),
        "start on an idle queue, p99": (False, "9.0 ms, the best 7.6 ms"),
    }


def test_the_doctor_is_asked_in_busy_runs_too() -> None:
    busy = [Result("snapshot", "leasebook", 0, 1, 2.0, {"kept": 0.5, "named": 1.0})]
    told = {each.goal: each.met for each in verdicts(busy)}
    assert told.pop("`doctor` names the session") is True
    assert set(told.values()) == {None}


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = Result("drain", "leasebook", 0, 10, 0.25, {"jobs_per_second": 12_345.0})
    recording = Recording({"cores": 2}, "full", 1, [result], {"oban": "no Python 3.12"})
    recorded = Recorded({"drain": recording}, {"drain": 0.5}, {"commit": "abc"})
    save(recorded, tmp_path / "recorded.json")
    assert load(tmp_path / "recorded.json") == recorded


def test_a_short_record_warns_of_itself() -> None:
    facts: dict[str, str] = {name: "x" for name in FACTS}
    result = Result("drain", "leasebook", 0, 10, 0.0, {"jobs_per_second": 1.0})
    for size, warned in (("tiny", True), ("full", False)):
        text = made(Recorded({"drain": Recording(facts, size, 1, [result], {})}))
        assert ("take none from it" in text) == warned
        assert text.startswith(BEGIN)
        assert text.endswith(END)


def test_every_goal_is_told() -> None:
    assert len({(each.what, each.goal) for each in GOALS}) == len(GOALS)


@pytest.mark.parametrize("name", KINDS)
def test_every_queue_says_what_it_lacks_and_where_it_comes_from(name: str) -> None:
    spec = Spec.parse(name)
    assert spec.peer.PENDING.startswith("select ")
    assert set(spec.peer.LACKS) <= set(PLANS)
    requirements = TOP / "bench" / "requirements"
    there = (requirements / f"{name}.txt").exists() or (requirements / name).is_dir()
    assert there == KINDS[name].installed
