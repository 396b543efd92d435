"""Who ran what and for how long, who was slow, and the same as a picture."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import Recorded
from leasebook.projections.replay.facts import gather
from leasebook.projections.replay.runs import Run, runs
from leasebook.projections.replay.timeline import draw, slots, trace_events
from leasebook.projections.replay.workers import workforce
from tests.support.facts import log, refused, started
from tests.support.lives import Life, at, job_id


def two_workers() -> list[Recorded]:
    """Six runs of each; ``w2`` takes three times as long."""
    events = count(1)
    return log(
        *(
            Life(events).enqueue(number=number).lease(number, worker).complete(number + seconds)
            for number, worker, seconds in (
                *((number, "w1", 1) for number in range(1, 7)),
                *((number, "w2", 3) for number in range(7, 13)),
            )
        )
    )


@pytest.mark.acceptance("E09")
def test_who_is_slower_than_the_others_at_the_same_work() -> None:
    told = workforce(runs(two_workers()), gather([started(0, "w1", 4)]), at(100))
    assert list(told.work) == ["w1", "w2"]
    first = told.work["w1"]
    assert (first.runs, first.microseconds, dict(first.ends)) == (6, 6_000_000, {"completed": 6})
    assert first.facts is not None
    assert first.facts.capacity == 4
    assert told.work["w2"].facts is None
    (slow,) = told.slow
    assert (slow.worker, slow.name, slow.runs, slow.factor) == ("w2", "sync_page", 6, 3.0)


def test_a_few_runs_say_nothing() -> None:
    few = [run for run in runs(two_workers()) if run.worker == "w1" or run.start == 9]
    assert workforce(few, gather([]), at(100)).slow == ()


def test_ends_lost_leases_and_late_answers() -> None:
    life = Life().enqueue().lease(1).expire(10).lease(12).fail(13).lease(80)
    told = workforce(runs(life.stream), gather([refused(11, 1, lease=2)]), at(90))
    work = told.work["w1"]
    assert dict(work.ends) == {"lease_expired": 1, "retry_scheduled": 1, "running": 1}
    assert (work.runs, work.lost, work.refused, work.microseconds) == (3, 1, 1, 20_000_000)
    assert (work.first, work.last) == (at(1), at(90))


@pytest.mark.acceptance("E09")
def test_slots_are_as_few_as_the_runs_need() -> None:
    events = count(1)
    ours = log(
        Life(events).enqueue(number=1).lease(0).complete(10),
        Life(events).enqueue(number=2).lease(2).expire(4).lease(12).fail(13),
        Life(events).enqueue(number=3).lease(4).release(6),
        Life(events).enqueue(number=4).lease(5, "w2"),
    )
    one, two, other = slots(runs(ours))
    assert (one.worker, one.number, [run.job_id for run in one.runs]) == (
        "w1",
        0,
        [job_id(1), job_id(2)],
    )
    assert [run.end for run in two.runs] == ["lease_expired", "released"]
    assert (other.worker, other.number) == ("w2", 0)
    assert draw(one, at(0), at(20), 20) == "==========" + "  x" + " " * 7
    assert draw(two, at(0), at(20), 20) == "  !!--" + " " * 14
    assert draw(other, at(0), at(20), 20) == "     " + ">" * 15
    assert draw(one, at(14), at(20), 5) == " " * 5


@pytest.mark.acceptance("E09")
def test_a_trace_for_perfetto() -> None:
    life = Life().enqueue().lease(0.5).fail(1.25, "no").lease(70)
    trace = list(trace_events(slots(runs(life.stream)), at(80)))
    assert [each["ph"] for each in trace] == ["M", "M", "X", "X"]
    assert trace[0]["args"] == {"name": "w1"}
    first, second = trace[2:]
    assert (first["dur"], first["cat"]) == (750_000, "retry_scheduled")
    assert (second["dur"], second["cat"]) == (10_000_000, "running")
    assert {first["pid"], first["tid"]} == {1}


RUNS = st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(0, 9)), max_size=20)


@given(RUNS)
def test_runs_of_one_slot_never_overlap(drawn: list[tuple[int, int | None]]) -> None:
    made = [
        Run(
            job_id(number), "x", "default", 2, 1, "w1", at(began),
            None if length is None else at(began + length), "completed",
        )
        for number, (began, length) in enumerate(drawn)
    ]  # fmt: skip
    placed = slots(made)
    assert sum(len(slot.runs) for slot in placed) == len(made)
    for slot in placed:
        for before, after in pairwise(slot.runs):
            assert before.ended is not None
            assert before.ended <= after.began
    if made:
        assert len(placed) <= max(_at_once(made, run) for run in made)


def _at_once(runs: list[Run], run: Run) -> int:
    others = [each for each in runs if each is not run and each.began <= run.began]
    return 1 + sum(each.ended is None or each.ended > run.began for each in others)
