"""State machines that Hypothesis runs, and that a plain seeded loop runs many times faster.

Hypothesis spends nine tenths of an example on bookkeeping that lets it shrink a failure.  So its
engine runs a few hundred examples of each machine and the loop runs tens of thousands; both draw
from the same choices, check after every step, and tell of a failure as a list of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Generic, TypeVar

from attrs import frozen
from hypothesis import stateful
from hypothesis import strategies as st

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

STEPS_MAX = 40
MARK = "plain_step"


@frozen
class Choice(Generic[T]):
    """Something to draw, in both ways."""

    strategy: st.SearchStrategy[T]
    draw: Callable[[Random], T]


def among(values: Sequence[T]) -> Choice[T]:
    """One of these; of an enumeration give its members as a tuple."""
    return Choice(st.sampled_from(values), lambda chance: chance.choice(values))


def whole(least: int, most: int) -> Choice[int]:
    """A whole number between two, both included."""
    return Choice(st.integers(least, most), lambda chance: chance.randint(least, most))


def several(each: Choice[T], least: int, most: int) -> Choice[list[T]]:
    """A list of so many."""
    return Choice(
        st.lists(each.strategy, min_size=least, max_size=most),
        lambda chance: [each.draw(chance) for _ in range(chance.randint(least, most))],
    )


def built(make: Callable[..., T], *given: Choice[Any], **named: Choice[Any]) -> Choice[T]:
    """What ``make`` makes of other choices."""

    def draw(chance: Random) -> T:
        return make(
            *(each.draw(chance) for each in given),
            **{name: each.draw(chance) for name, each in named.items()},
        )

    strategies = {name: each.strategy for name, each in named.items()}
    return Choice(st.builds(make, *(each.strategy for each in given), **strategies), draw)


def either(*choices: Choice[T]) -> Choice[T]:
    """One of these choices."""
    return Choice(
        st.one_of(*(each.strategy for each in choices)),
        lambda chance: chance.choice(choices).draw(chance),
    )


@frozen
class Step:
    """One method of a machine: ``begin``, ``rule`` or ``invariant``."""

    kind: str
    name: str
    act: Callable[..., None]
    choices: dict[str, Choice[Any]]


def begin(**choices: Choice[Any]) -> Callable[[F], F]:
    """The first step."""
    return _marked("begin", stateful.initialize, choices)


def rule(**choices: Choice[Any]) -> Callable[[F], F]:
    """A step that may be taken at any time."""
    return _marked("rule", stateful.rule, choices)


def invariant() -> Callable[[F], F]:
    """What is checked after every step."""
    return _marked("invariant", stateful.invariant, {})


def _marked(kind: str, original: Any, choices: dict[str, Choice[Any]]) -> Callable[[F], F]:
    strategies = {name: choice.strategy for name, choice in choices.items()}

    def mark(method: F) -> F:
        wrapped: F = original(**strategies)(method)
        setattr(wrapped, MARK, Step(kind, method.__name__, method, choices))
        return wrapped

    return mark


class Broken(AssertionError):
    """A history that a machine does not survive."""


def live(machine: type[stateful.RuleBasedStateMachine], seed: int) -> None:
    """One history of ``STEPS_MAX`` steps.  Raises Broken with all of its steps."""
    chance = Random(seed)
    steps = [step for each in vars(machine).values() if (step := getattr(each, MARK, None))]
    rules = [step for step in steps if step.kind == "rule"]
    checks = [step.act for step in steps if step.kind == "invariant"]
    one = machine()
    told: list[str] = []
    try:
        for step in steps:
            if step.kind == "begin":
                _take(step, one, chance, told)
        for _ in range(STEPS_MAX):
            _take(chance.choice(rules), one, chance, told)
            for check in checks:
                check(one)
        one.teardown()
    except Exception as error:
        history = "\n  ".join(told)
        raise Broken(f"{machine.__name__}, seed {seed}: {error!r} after\n  {history}") from error


def _take(step: Step, one: object, chance: Random, told: list[str]) -> None:
    given = {name: choice.draw(chance) for name, choice in step.choices.items()}
    told.append(f"{step.name} {given}" if given else step.name)
    step.act(one, **given)
