"""The guard fails on a fall that is measured twice, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.guard import (
    FALL_MAX,
    QUEUES,
    REPEATED_ROUNDS,
    ROUNDS,
    WATCHED,
    Outcome,
    exit_code,
    guard,
    judge,
    ratios,
)
from bench.result import Result

RECORDED = {"hot items_per_second beside bare": 5.0, "hot open_items_per_second beside bare": 10.0}


def rounds(
    count: int, times: float, *, foreign: float = 0.0, open_times: float = 10.0
) -> list[Result]:
    """leasebook so many times as fast as bare SQL, on a machine that drifts."""
    found: list[Result] = []
    for number in range(count):
        speed = 100.0 * (1 + number)
        base = {"items_per_second": speed, "open_items_per_second": speed}
        own = {
            "items_per_second": speed * times,
            "open_items_per_second": speed * open_times,
        }
        found.append(Result("hot", "bare", number, 0, foreign, base))
        found.append(Result("hot", "leasebook", number, 0, 0.0, own))
    return found


class Runs:
    """Answers prepared for each time a measure is run."""

    def __init__(self, *answers: Sequence[Result]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, measure: str, rounds: int) -> Sequence[Result]:
        self.asked.append((measure, rounds))
        return self.answers.pop(0)


def outcomes(runs: Runs) -> list[Outcome]:
    return [each.outcome for each in guard(RECORDED, runs, ["hot"])]


@pytest.mark.parametrize(
    ("times", "outcome"),
    [
        (6.0, Outcome.HELD),
        (5.0 * (1 - FALL_MAX) + 0.01, Outcome.HELD),
        (5.0 * (1 - FALL_MAX) - 0.01, Outcome.FELL),
    ],
)
def test_a_fall_of_more_than_15_percent_is_one(times: float, outcome: Outcome) -> None:
    judged = judge(rounds(2, times), RECORDED, "hot")
    assert [each.outcome for each in judged] == [outcome, Outcome.HELD]


def test_what_holds_is_measured_once() -> None:
    runs = Runs(rounds(3, 5.0))
    assert outcomes(runs) == [Outcome.HELD, Outcome.HELD]
    assert runs.asked == [("hot", ROUNDS)]


def test_a_fall_is_measured_again_before_it_counts() -> None:
    runs = Runs(rounds(3, 3.0), rounds(5, 5.0))
    assert outcomes(runs) == [Outcome.HELD, Outcome.HELD]
    assert runs.asked == [("hot", ROUNDS), ("hot", REPEATED_ROUNDS)]


def test_a_fall_that_is_measured_twice_fails() -> None:
    judged = guard(RECORDED, Runs(rounds(3, 3.0), rounds(5, 3.1)), ["hot"])
    assert [each.outcome for each in judged] == [Outcome.FELL, Outcome.HELD]
    assert exit_code(judged) == 1
    assert str(judged[0]) == "hot items_per_second beside bare: 3.100, recorded 5.000: fell"


def test_what_held_once_is_not_judged_by_the_repetition() -> None:
    runs = Runs(rounds(3, 3.0), rounds(5, 5.0, open_times=1.0))
    assert outcomes(runs) == [Outcome.HELD, Outcome.HELD]


def test_a_busy_machine_is_no_slow_queue() -> None:
    runs = Runs(rounds(3, 1.0, foreign=1.0), rounds(5, 1.0, foreign=1.0))
    judged = guard(RECORDED, runs, ["hot"])
    assert {each.outcome for each in judged} == {Outcome.UNKNOWN}
    assert exit_code(judged) == 2


def test_one_quiet_round_is_not_enough() -> None:
    several = [*rounds(1, 1.0), *rounds(3, 1.0, foreign=1.0)[2:]]
    assert {each.outcome for each in judge(several, RECORDED, "hot")} == {Outcome.UNKNOWN}


def test_what_was_never_recorded_is_said_to_be_new() -> None:
    judged = guard({}, Runs(rounds(3, 5.0)), ["hot"])
    assert {each.outcome for each in judged} == {Outcome.NEW}
    assert exit_code(judged) == 2


def test_growth_is_a_ratio_by_itself() -> None:
    slow = [
        Result("growth", "leasebook", number, 0, 0.0, {"slower": slower})
        for number, slower in enumerate((1.25, 1.25, 2.0))
    ]
    assert ratios(slow) == {"growth slower": 0.8}
    judged = judge(slow, {"growth slower": 1.0}, "growth")
    assert [each.outcome for each in judged] == [Outcome.FELL]


def test_every_watched_ratio_can_be_measured() -> None:
    for each in WATCHED:
        assert {"leasebook", each.base or "leasebook"} <= set(QUEUES[each.measure])
