"""What leasebook is to reach beside the others, and whether it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from attrs import frozen

from .ratios import against, against_best, best, is_library, is_queue, rounds, values_of
from .result import Result

OWN = "leasebook"
Judge = Callable[[Sequence[Result]], tuple[bool, str] | None]


@frozen
class Goal:
    """A goal in words; ``judge`` tells whether it is met and what was seen, None if unmeasured."""

    what: str
    goal: str
    judge: Judge


@frozen
class Verdict:
    """A goal, what was measured, and whether it is met; None when it was not measured in quiet."""

    what: str
    goal: str
    seen: str
    met: bool | None


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    """One for each goal."""
    found: list[Verdict] = []
    for goal in GOALS:
        met, seen = goal.judge(results) or (None, "not measured in quiet")
        found.append(Verdict(goal.what, goal.goal, seen, met))
    return found


def _at_least(what: str, measure: str, figure: str, least: float, base: str | None = None) -> Goal:
    """So many times the base, or the fastest Python library of the round."""

    def judge(results: Sequence[Result]) -> tuple[bool, str] | None:
        found = (
            against(results, measure, figure, OWN, base)
            if base
            else against_best(results, measure, figure, OWN, is_library)
        )
        if not found:
            return None
        return median(found) >= least, f"{median(found):.2f} times"

    of = "bare SQL" if base else "the fastest Python library"
    return Goal(what, f"at least {least:g} times {of}", judge)


def _at_most(what: str, measure: str, figure: str, most: float, goal: str, seen: str) -> Goal:
    """No more than so much of a figure."""

    def judge(results: Sequence[Result]) -> tuple[bool, str] | None:
        found = values_of(results, measure, OWN, figure)
        if not found:
            return None
        return median(found) <= most, seen.format(median(found))

    return Goal(what, goal, judge)


def _start(what: str, measure: str, figure: str) -> Goal:
    """Not later than the queue with the best p50 of the round."""

    def judge(results: Sequence[Result]) -> tuple[bool, str] | None:
        firsts = rounds(results, measure, "start_p50")
        own: list[float] = []
        other: list[float] = []
        for number, values in rounds(results, measure, figure).items():
            name = best("start_p50", firsts[number], is_queue)
            if name is not None and OWN in values:
                own.append(values[OWN])
                other.append(values[name])
        if not own:
            return None
        seen = f"{median(own):.1f} ms, the best {median(other):.1f} ms"
        return median(own) <= median(other), seen

    return Goal(what, "at most that of the queue with the best p50", judge)


def _kept(results: Sequence[Result]) -> tuple[bool, str] | None:
    found = values_of(results, "snapshot", OWN, "kept")
    if not found:
        return None
    fall = (1 - median(found)) * 100
    return fall < 10, f"{max(0.0, fall):.0f} %" if fall > 0 else "none"


def _named(results: Sequence[Result]) -> tuple[bool, str] | None:
    found = [
        each.figures["named"]
        for each in results
        if each.measure == "snapshot" and each.queue == OWN and "named" in each.figures
    ]
    return (all(found), "yes" if all(found) else "no") if found else None


GOALS = (
    _at_least("drain, one worker", "drain", "jobs_per_second", 1.5),
    _at_least("drain, one worker", "drain", "jobs_per_second", 0.5, "bare"),
    _at_least("drain, two workers", "two", "jobs_per_second", 1.3),
    _at_least("drain, two workers", "two", "jobs_per_second", 0.38, "bare"),
    _at_least("enqueue one by one", "single", "single_per_second", 1.1),
    _at_least("enqueue in bulk", "drain", "bulk_per_second", 1.3),
    _start("start on an idle queue, p50", "latency", "start_p50"),
    _start("start on an idle queue, p99", "latency", "start_p99"),
    _start("the same with two workers, p50", "latency-two", "start_p50"),
    _start("the same with two workers, p99", "latency-two", "start_p99"),
    _at_least("one hot key, 20 producers", "hot", "items_per_second", 5, "bare"),
    _at_least("the same, open for 10 ms", "hot", "open_items_per_second", 20, "bare"),
    _at_most(
        "growth", "growth", "slower", 1.15, "at most 1.15 times as slow", "{:.2f} times as slow"
    ),
    Goal("an old snapshot", "speed falls by less than 10 %", _kept),
    Goal("an old snapshot", "`doctor` names the session", _named),
    _at_most(
        "WAL, enqueue and drain",
        "drain",
        "wal",
        1_600,
        "at most 1,600 bytes a job",
        "{:,.0f} bytes",
    ),
    _at_most(
        "idle worker of 20 queues", "idle", "core_percent", 1, "under 1 % of a core", "{:.2f} %"
    ),
    _at_most(
        "idle worker of 20 queues",
        "idle",
        "statements_per_second",
        2,
        "at most 2 statements/s",
        "{:.1f}/s",
    ),
    _at_most("peak memory of a worker", "drain", "memory_peak", 150, "under 150 MB", "{:.0f} MB"),
)
