"""Retry policies: fixed, list, exponential with cap and jitter, and the presets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import AI_STEPS, PRODUCT_EVENTS, WORKFLOW_ACTIONS, InvalidValue, Retry
from tests.support.lives import job_id

JOB = job_id(1)


def waits(policy: Retry, attempts: int = 5) -> list[float]:
    return [policy.seconds(JOB, attempt) for attempt in range(1, attempts + 1)]


@pytest.mark.acceptance("A04")
def test_fixed_waits_a_minute_unless_told_otherwise() -> None:
    assert waits(Retry()) == [60.0] * 5
    assert waits(Retry(3, delay=5)) == [5.0] * 5


@pytest.mark.acceptance("A04")
def test_list_gives_each_wait_and_repeats_its_last() -> None:
    policy = Retry(delays=(1, 10, 60))
    assert policy.retries == 3
    assert waits(policy) == [1.0, 10.0, 60.0, 60.0, 60.0]
    assert Retry(1, delays=(1, 10, 60)).retries == 1


@pytest.mark.acceptance("A04")
def test_exponential_grows_to_its_cap() -> None:
    assert waits(Retry(9, delay=2, factor=3, cap=50)) == [2.0, 6.0, 18.0, 50.0, 50.0]


@pytest.mark.acceptance("A04")
def test_jitter_spreads_and_is_the_same_each_time() -> None:
    policy = Retry(9, delay=100, jitter=0.1)
    first = [policy.seconds(job_id(number), 1) for number in range(200)]
    assert first == [policy.seconds(job_id(number), 1) for number in range(200)]
    assert min(first) >= 90
    assert max(first) <= 110
    assert max(first) - min(first) > 15
    assert len(set(waits(policy))) == 5
    assert Retry(9, delay=100, cap=100, jitter=1).seconds(JOB, 1) <= 100


@pytest.mark.acceptance("A04")
def test_default_and_presets() -> None:
    assert Retry().retries == 3
    presets = (PRODUCT_EVENTS.retries, WORKFLOW_ACTIONS.retries, AI_STEPS.retries)
    assert presets == (1, 1, 3)


def test_slow_growth_goes_on_to_the_cap_and_fast_growth_does_not_overflow() -> None:
    assert Retry(1_000, delay=1, factor=1.1).seconds(JOB, 1_000) == 86_400
    assert Retry(1_000, delay=1, factor=1e6).seconds(JOB, 1_000) == 86_400
    assert Retry(1_000, delay=0, factor=1e6).seconds(JOB, 1_000) == 0


@given(
    st.floats(0, 1e9),
    st.floats(1, 1e6),
    st.floats(0, 1e9),
    st.floats(0, 1),
    st.integers(1, 1_001),
)
def test_a_wait_is_always_a_number_within_the_cap(
    delay: float, factor: float, cap: float, jitter: float, attempt: int
) -> None:
    policy = Retry(1_000, delay=delay, factor=factor, cap=cap, jitter=jitter)
    assert 0 <= policy.seconds(JOB, attempt) <= cap


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"retries": -1}, "retries"),
        ({"retries": 1_001}, "retries"),
        ({"retries": True}, "retries"),
        ({"retries": 1.5}, "retries"),
        ({"retries": 10**5_000}, "retries"),
        ({"delay": -1}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"delay": 10**5_000}, "delay"),
        ({"delay": "60"}, "delay"),
        ({"delays": (1, -1)}, "delays"),
        ({"factor": 0.5}, "factor"),
        ({"cap": float("inf")}, "cap"),
        ({"jitter": 1.5}, "jitter"),
    ],
    ids=lambda each: str(each)[:30] if isinstance(each, str) else "",
)
def test_a_policy_that_makes_no_sense_is_refused(given_: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Retry(**given_)
    assert refused.value.field == field
