"""Rounds of a measure: queues take turns, and one that fails is left out by name."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import psycopg
from attrs import field, frozen

from .environments import NotInstalled, environment_of
from .measures import MEASURES, Bench
from .peers import KINDS, Spec
from .result import Result

FAILURES = (RuntimeError, OSError, subprocess.SubprocessError, psycopg.Error, ValueError)
Tell = Callable[[str], None]

EVERY = tuple(KINDS)
USUAL = ("bare", "pgqueuer", "leasebook")


@frozen
class Plan:
    """Which queues are measured, and in how many rounds: usually, and for the page.

    ``others`` is why the page has no more of them than these.
    """

    queues: tuple[str, ...]
    rounds: int
    recorded_queues: tuple[str, ...]
    recorded_rounds: int
    others: str = ""


PLANS = MappingProxyType(
    {
        "drain": Plan(USUAL, 3, EVERY, 3),
        "two": Plan(USUAL, 2, EVERY, 3),
        "bulk": Plan(USUAL, 3, EVERY, 3),
        "single": Plan(USUAL, 2, EVERY, 3),
        "latency": Plan(USUAL[1:], 1, EVERY, 2),
        "latency-two": Plan(USUAL[1:], 1, EVERY, 2),
        "hot": Plan(("bare", "leasebook"), 2, EVERY, 5),
        "notify": Plan(("leasebook",), 1, ("leasebook",), 3, "a question about leasebook alone"),
        "growth": Plan(("leasebook",), 2, EVERY, 2),
        "snapshot": Plan(("leasebook",), 1, ("leasebook",), 1, "twenty minutes each"),
        "idle": Plan(("leasebook",), 1, EVERY, 1),
    }
)
#: ``drain`` tells what ``bulk`` would.
USUALLY = tuple(name for name in PLANS if name != "bulk")


@frozen
class Measured:
    """The runs of a measure, and why a queue is missing."""

    results: Sequence[Result] = field(factory=list[Result])
    absent: Mapping[str, str] = field(factory=dict[str, str])


def measured(
    bench: Bench, measure: str, specs: Sequence[Spec], rounds: int, tell: Tell
) -> Measured:
    """Every queue once in each round, in the same order."""
    results: list[Result] = []
    absent: dict[str, str] = {}
    for spec in specs:
        if why := _missing(measure, spec):
            absent[spec.text] = why
            tell(f"{measure}: {spec.text} is left out: {why}")
    for number in range(rounds):
        for spec in specs:
            if spec.text in absent:
                continue
            try:
                result = MEASURES[measure](bench, spec, number)
            except FAILURES as error:
                absent[spec.text] = f"failed: {_last_line(error)}"
                tell(f"{measure}: {spec.text} failed and is left out from now on\n{error}")
                continue
            results.append(result)
            tell(told(result, rounds))
    return Measured(results, absent)


def told(result: Result, rounds: int) -> str:
    """A run on one line."""
    shown = " ".join(f"{name}={value:,.6g}" for name, value in result.figures.items())
    noisy = "" if result.quiet else f" NOISY ({result.foreign:.1f} cores used by others)"
    return f"{result.measure} {result.round + 1}/{rounds} {result.queue}{noisy} {shown}"


def _missing(measure: str, spec: Spec) -> str | None:
    if measure == "notify" and spec.name != "leasebook":
        return PLANS[measure].others
    if measure in spec.peer.LACKS:
        return spec.peer.LACKS[measure]
    try:
        environment_of(spec)
    except NotInstalled as error:
        return str(error)
    return None


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).replace("|", "/")[:200]
