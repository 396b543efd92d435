"""``make bench-guard``: has leasebook become slower, beside others in the same rounds?

Only ratios are compared, because machines differ and drift.  A ratio that has fallen is measured
once more before it fails the guard, and one that could not be measured in quiet is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from statistics import median

from attrs import frozen

from .ratios import against, values_of
from .result import Result

OWN = "leasebook"
FALL_MAX = 0.15
QUIET_ROUNDS_MIN = 2
ROUNDS = 3
#: A measure that has fallen is repeated with so many rounds.
REPEATED_ROUNDS = 5
SIZE = "short"


@frozen
class Watched:
    """A ratio: a figure beside that of ``base``, or by itself when it is a ratio already."""

    measure: str
    figure: str
    base: str | None

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{self.measure} {self.figure}" + (f" beside {self.base}" if self.base else "")


WATCHED = (
    Watched("drain", "jobs_per_second", "bare"),
    Watched("drain", "jobs_per_second", "pgqueuer"),
    Watched("drain", "bulk_per_second", "pgqueuer"),
    Watched("drain", "wal", "pgqueuer"),
    Watched("two", "jobs_per_second", "bare"),
    Watched("two", "jobs_per_second", "pgqueuer"),
    Watched("single", "single_per_second", "bare"),
    Watched("single", "single_per_second", "pgqueuer"),
    Watched("latency", "start_p50", "pgqueuer"),
    Watched("latency-two", "start_p50", "pgqueuer"),
    Watched("hot", "items_per_second", "bare"),
    Watched("hot", "open_items_per_second", "bare"),
    Watched("growth", "slower", None),
)
QUEUES: Mapping[str, tuple[str, ...]] = {
    "drain": ("bare", "pgqueuer", OWN),
    "two": ("bare", "pgqueuer", OWN),
    "single": ("bare", "pgqueuer", OWN),
    "latency": ("pgqueuer", OWN),
    "latency-two": ("pgqueuer", OWN),
    "hot": ("bare", OWN),
    "growth": (OWN,),
}


class Outcome(StrEnum):
    """What became of a ratio."""

    HELD = "held"
    FELL = "fell"
    UNKNOWN = "could not be measured in quiet"
    NEW = "not recorded yet"


@frozen
class Judged:
    """A ratio now and then; both say how many times as good, None when unknown."""

    watched: Watched
    outcome: Outcome
    now: float | None
    then: float | None

    def __str__(self) -> str:
        seen = "unknown" if self.now is None else f"{self.now:.3f}"
        recorded = "unknown" if self.then is None else f"{self.then:.3f}"
        return f"{self.watched.key}: {seen}, recorded {recorded}: {self.outcome}"


def ratio(results: Sequence[Result], watched: Watched) -> float | None:
    """How many times as good, over the quiet rounds; None with fewer than two of them.

    A figure without a base says by itself how many times as slow something is.
    """
    if watched.base is None:
        found = [1 / value for value in values_of(results, watched.measure, OWN, watched.figure)]
    else:
        found = against(results, watched.measure, watched.figure, OWN, watched.base)
    return median(found) if len(found) >= QUIET_ROUNDS_MIN else None


def ratios(results: Sequence[Result]) -> dict[str, float]:
    """All that could be measured, for the record."""
    found = {each.key: ratio(results, each) for each in WATCHED}
    return {key: value for key, value in found.items() if value is not None}


def judge(results: Sequence[Result], recorded: Mapping[str, float], measure: str) -> list[Judged]:
    """The ratios of a measure beside the recorded ones."""
    found: list[Judged] = []
    for watched in WATCHED:
        if watched.measure == measure:
            now, then = ratio(results, watched), recorded.get(watched.key)
            found.append(Judged(watched, _outcome(now, then), now, then))
    return found


def _outcome(now: float | None, then: float | None) -> Outcome:
    if now is None:
        return Outcome.UNKNOWN
    if then is None:
        return Outcome.NEW
    return Outcome.FELL if now < then * (1 - FALL_MAX) else Outcome.HELD


def guard(
    recorded: Mapping[str, float],
    run: Callable[[str, int], Sequence[Result]],
    measures: Sequence[str] = tuple(QUEUES),
) -> list[Judged]:
    """Measure, and once more what fell or was disturbed.  ``run`` is given a measure and rounds."""
    found: list[Judged] = []
    for measure in measures:
        first = judge(run(measure, ROUNDS), recorded, measure)
        doubtful = (Outcome.FELL, Outcome.UNKNOWN)
        if all(each.outcome not in doubtful for each in first):
            found.extend(first)
            continue
        again = judge(run(measure, REPEATED_ROUNDS), recorded, measure)
        # What held once has held: the repetition is for the others.
        found.extend(
            second if before.outcome in doubtful else before
            for before, second in zip(first, again, strict=True)
        )
    return found


def exit_code(judged: Sequence[Judged]) -> int:
    """1 when a ratio fell, 2 when one is not known, else 0."""
    outcomes = {each.outcome for each in judged}
    if Outcome.FELL in outcomes:
        return 1
    return 2 if outcomes & {Outcome.UNKNOWN, Outcome.NEW} else 0
