"""What can be a handler, and what is said of what cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from leasebook import (
    AI_STEPS,
    PRODUCT_EVENTS,
    WORKFLOW_ACTIONS,
    Book,
    Fail,
    Group,
    InvalidValue,
    RateLimited,
    Retry,
    RetryIn,
    Run,
    Snooze,
)
from leasebook.domain import Job, Policy, State
from leasebook.domain.values import OnExhausted
from leasebook.infra.app.errors import HandlerRefused, NameTaken, UnknownName
from leasebook.infra.app.ids import new_id
from leasebook.infra.app.registry import JobType

from .ground import PageChanged
from .test_birth import PAST, spec

GROUP = Group(window=1, max_hold=2)


def test_a_plain_handler_has_the_documented_defaults() -> None:
    book = Book()

    @book.job
    def work(run: Run, a: int) -> None: ...

    assert isinstance(work, JobType)
    assert book.jobs == {"work": work}
    assert (work.name, work.queue, work.defaults.priority, work.group) == (
        "work",
        "default",
        5,
        None,
    )
    assert work.policy == Policy(3, 600.0, 600.0, OnExhausted.HOLD)
    assert work.retry == Retry(3, delay=60)
    assert not work.is_async
    with pytest.raises(TypeError):
        book.jobs["other"] = work  # type: ignore[index]


@pytest.mark.acceptance("A04")
@pytest.mark.parametrize(
    ("preset", "retries"), [(PRODUCT_EVENTS, 1), (WORKFLOW_ACTIONS, 1), (AI_STEPS, 3)]
)
def test_presets_and_numbers_are_policies(preset: Retry, retries: int) -> None:
    book = Book()

    @book.job(name="preset", retry=preset)
    def first() -> None: ...

    @book.job(name="number", retry=retries)
    def second() -> None: ...

    assert first.policy.retries == second.policy.retries == retries


def positional(run: Run, a: int, /, b: str = "x") -> tuple[object, ...]:
    return (run.attempt, a, b)


def named(run, a: int):  # type: ignore[no-untyped-def] # pyright: ignore
    return (run.attempt, a)  # pyright: ignore


def without(a: int) -> tuple[object, ...]:
    return (a,)


def last(a: int, me: Run) -> tuple[object, ...]:
    return (a, me.attempt)


@pytest.mark.parametrize(
    ("handler", "args", "result"),
    [
        (positional, '{"a":1}', (1, 1, "x")),
        (named, '{"a":1}', (1, 1)),  # pyright: ignore[reportUnknownArgumentType]
        (without, '{"a":1}', (1,)),
        (last, '{"a":1}', (1, 1)),
    ],
)
def test_a_handler_gets_what_it_asks_for(
    handler: Callable[..., Any], args: str, result: tuple[object, ...]
) -> None:
    kind: JobType = Book().job(handler)
    job = Job(spec(args=args), State.LEASED, 2, PAST, PAST)
    assert kind.invoke(Run(job), job) == result


def test_a_grouped_handler_gets_its_items() -> None:
    book = Book()

    @book.job(group=GROUP)
    def sync(run: Run, items: list[PageChanged]) -> list[str]:
        return [item.path for item in items]

    job = Job(spec(), State.LEASED, 2, PAST, PAST, items=('{"path":"a"}', '{"path":"b"}'))
    assert sync.invoke(Run(job), job) == ["a", "b"]


def test_annotations_find_local_classes() -> None:
    book = Book()

    @frozen
    class Local:
        number: int

    @book.job
    async def work(thing: Local, things: list[Local]) -> None: ...

    work.check(Local(1), [Local(2)])
    with pytest.raises(InvalidValue, match=r"args\.things\[0\]\.number"):
        work.check(Local(1), [Local("2")])  # type: ignore[arg-type]


def refused() -> dict[str, tuple[Any, dict[str, Any], str]]:
    """Handlers and options that cannot be registered, with what the error must name."""

    def unannotated(run: Run, a) -> None: ...  # type: ignore[no-untyped-def]
    def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
    def untyped(a: object) -> None: ...
    def many(*a: int) -> None: ...
    def keywords(**a: int) -> None: ...
    def generator(a: int) -> Any:
        yield a

    async def async_generator(a: int) -> Any:
        yield a

    def clash(queue: str) -> None: ...
    def taken(run: int) -> None: ...
    def two(one: Run, two: Run) -> None: ...
    def default(a: float = float("nan")) -> None: ...
    def wrong_default(a: int = "1") -> None: ...  # type: ignore[assignment]
    def fine(a: int) -> None: ...
    def no_list(a: int) -> None: ...
    def two_lists(a: list[int], b: list[int]) -> None: ...
    def bare_list(a: list) -> None: ...  # type: ignore[type-arg]

    class Callable_:
        def __call__(self, a: int) -> None: ...

    return {
        "no annotation": (unannotated, {}, "'a'"),
        "unknown annotation": (unknown, {}, "Nowhere"),
        "no type of JSON": (untyped, {}, "'a'"),
        "any number": (many, {}, "'a'"),
        "any keywords": (keywords, {}, "'a'"),
        "generator": (generator, {}, "generator"),
        "async generator": (async_generator, {}, "generator"),
        "lambda": (lambda: None, {}, "lambda"),
        "class": (Callable_, {}, "no function"),
        "object": (Callable_(), {}, "no function"),
        "name of an option": (clash, {}, "'queue'"),
        "run of another type": (taken, {}, "'run'"),
        "two runs": (two, {}, "'two'"),
        "NaN as a default": (default, {}, "'a'"),
        "a default of another type": (wrong_default, {}, "'a'"),
        "group without a list": (no_list, {"group": GROUP}, "list"),
        "group with two lists": (two_lists, {"group": GROUP}, "list"),
        "group with a bare list": (bare_list, {"group": GROUP}, "list"),
        "unknown option": (fine, {"retires": 3}, "'retry'"),
        "negative retry": (fine, {"retry": -1}, "retry"),
        "retry as a text": (fine, {"retry": "3"}, "retry"),
        "retry as a bool": (fine, {"retry": True}, "retry"),
        "no time-out": (fine, {"timeout": 0}, "timeout"),
        "time-out NaN": (fine, {"timeout": float("nan")}, "timeout"),
        "lease as a text": (fine, {"lease": "1"}, "lease"),
        "group as a dict": (fine, {"group": {"window": 1}}, "group"),
        "on_expired": (fine, {"on_expired": "hold"}, "on_expired"),
        "on_exhausted": (fine, {"on_exhausted": "keep"}, "on_exhausted"),
        "priority": (fine, {"priority": 10}, "priority"),
        "queue": (fine, {"queue": ""}, "queue"),
        "blank name": (fine, {"name": " "}, "name"),
        "long name": (fine, {"name": "n" * 129}, "name"),
        "label": (fine, {"label": "a\0"}, "label"),
    }


REFUSED = refused()


@pytest.mark.acceptance("P01")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_registered_is_refused_at_once(name: str) -> None:
    handler, options, named_in_error = REFUSED[name]
    book = Book()
    with pytest.raises((HandlerRefused, InvalidValue)) as caught:
        book.job(**options)(handler)
    assert named_in_error in str(caught.value)
    assert not book.jobs


def test_a_name_has_one_handler() -> None:
    book = Book()

    def work(a: int) -> None: ...
    def other(a: int) -> None: ...

    book.job(work)
    with pytest.raises(NameTaken, match="work"):
        book.job(name="work")(other)
    book.job(name="other work")(other)
    assert set(book.jobs) == {"work", "other work"}
    with pytest.raises(UnknownName, match="'other work'"):
        book.find("other_work")


def test_signals_take_checked_numbers() -> None:
    assert RetryIn(5).seconds == Snooze(5).seconds == RateLimited(5).retry_after == 5.0
    assert (Fail("no").reason, Fail("no").retry, Fail("no", True).retry) == ("no", False, True)
    bad: list[Any] = [-1, float("nan"), float("inf"), "1", True, None]
    for signal in (RetryIn, Snooze, RateLimited):
        for value in bad:
            with pytest.raises(InvalidValue):
                signal(value)
    with pytest.raises(InvalidValue):
        Fail(None)  # type: ignore[arg-type]


def test_a_run_tells_what_it_is() -> None:
    job = Job(spec(label="l", owner="o", subject="s"), State.LEASED, 2, PAST, PAST, 3, 1)
    run = Run(job)
    assert (run.job_id, run.name, run.queue) == (job.id, "n", "default")
    assert (run.attempt, run.start, run.label, run.owner, run.subject) == (2, 3, "l", "o", "s")
    assert not run.lost
    assert not run.stopping


def test_a_run_logs_to_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(spec(), State.LEASED, 2, PAST, PAST)
    with caplog.at_level("INFO", "leasebook.handler"):
        Run(job).log.info("100% done", pages=3)
    (record,) = caplog.records
    assert record.getMessage().startswith("100% done ")
    assert vars(record)["leasebook"]["pages"] == 3
    assert vars(record)["leasebook"]["job"] == str(job.id)


def test_ids_are_uuid7_and_grow() -> None:
    ids = [new_id() for _ in range(1_000)]
    assert ids == sorted(set(ids))
    assert {each.version for each in ids} == {7}
