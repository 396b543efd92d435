"""Ratios of queues inside a round.

The speed of a machine drifts by a quarter within minutes, so two queues are compared only inside a
round, where they ran one after the other, and the ratio told is the median over the rounds.  Runs
during which others used the processors are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .peers import KINDS
from .result import FIGURES, Result

#: round -> queue -> value
Rounds = dict[int, dict[str, float]]


def rounds(results: Iterable[Result], measure: str, figure: str) -> Rounds:
    """What each queue measured in each round, as far as the machine was quiet."""
    found: Rounds = {}
    for each in results:
        if each.measure == measure and each.quiet and figure in each.figures:
            found.setdefault(each.round, {})[each.queue] = each.figures[figure]
    return found


def better(figure: str, own: float, other: float) -> float:
    """How many times as good: above 1 when ``own`` is the better one."""
    mine, theirs = (own, other) if FIGURES[figure].more else (other, own)
    return mine / theirs if theirs else (1.0 if not mine else float("inf"))


def against(
    results: Iterable[Result], measure: str, figure: str, own: str, other: str
) -> list[float]:
    """``better`` for every round in which both were measured."""
    found = rounds(results, measure, figure).values()
    return [
        better(figure, each[own], each[other]) for each in found if own in each and other in each
    ]


def best(figure: str, values: dict[str, float], among: Callable[[str], bool]) -> str | None:
    """The queue of a round with the best value."""
    names = [queue for queue in values if among(queue)]
    if not names:
        return None
    return (max if FIGURES[figure].more else min)(names, key=values.__getitem__)


def against_best(
    results: Iterable[Result], measure: str, figure: str, own: str, among: Callable[[str], bool]
) -> list[float]:
    """``better`` than the best of the others, for every round.

    A round in which one was not measured in quiet that is the best of any other counts for nothing:
    the second best would stand in its place.
    """
    found = rounds(results, measure, figure)

    def others(queue: str) -> bool:
        return queue != own and among(queue)

    leaders = {number: best(figure, values, others) for number, values in found.items()}
    everybody = {own, *leaders.values()} - {None}
    return [
        better(figure, values[own], values[leader])
        for number, values in found.items()
        if (leader := leaders[number]) is not None and everybody <= values.keys()
    ]


def is_library(queue: str) -> bool:
    """Whether it is a Python library with the settings that it is fastest with."""
    return queue in KINDS and KINDS[queue].library


def is_queue(queue: str) -> bool:
    """Whether it is somebody else's queue, in any language, and not bare SQL."""
    return queue in KINDS and KINDS[queue].installed


def values_of(results: Sequence[Result], measure: str, queue: str, figure: str) -> list[float]:
    """What one queue measured, quiet rounds only."""
    return [each[queue] for each in rounds(results, measure, figure).values() if queue in each]


def shown(results: Iterable[Result], measure: str, queue: str, figure: str) -> list[float]:
    """What a table shows: quiet runs, or all where none was, which is better than nothing."""
    runs = [each for each in results if (each.measure, each.queue) == (measure, queue)]
    counted = [each for each in runs if each.quiet] or runs
    return [each.figures[figure] for each in counted if figure in each.figures]
