"""A type that aborts: a run that was interrupted is the last, whatever interrupted it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import (
    ExpiryCause,
    IllegalTransition,
    LeasebookError,
    OnExhausted,
    OnExpired,
    Outcome,
    ReleaseReason,
    State,
)
from leasebook.domain.commands import TakeLease
from leasebook.domain.events import Failed
from leasebook.domain.limits import ERROR_CHARS_MAX
from leasebook.domain.states import WAITING
from leasebook.projections.check import check
from tests.support.lives import Life, at

ABORT = OnExpired.ABORT
Act = Callable[[Life, float], Life]

INTERRUPTIONS: dict[str, Act] = {
    "its lease ends": lambda life, now: life.expire(now + 601, ExpiryCause.LEASE_ENDED),
    "its worker dies": lambda life, now: life.expire(now, ExpiryCause.WORKER_LOST),
    "it runs over": lambda life, now: life.expire(now, ExpiryCause.TIMED_OUT),
    "its worker stops": lambda life, now: life.release(now, ReleaseReason.SHUTDOWN),
    "it breaks in a stop": lambda life, now: life.fail(now, interrupted=True),
}
ANSWERS: dict[str, Act] = {
    "fails": lambda life, now: life.fail(now, delay=1),
    "snoozes": lambda life, now: life.release(now, ReleaseReason.SNOOZE, 1),
    "meets a limit": lambda life, now: life.release(now, ReleaseReason.RATE_LIMITED, 1),
    "never started": lambda life, now: life.release(now, ReleaseReason.NEVER_STARTED),
    "is renewed": lambda life, now: life.renew(now, now + 900),
}


@pytest.mark.acceptance("P06")
@pytest.mark.parametrize("how", INTERRUPTIONS)
@pytest.mark.parametrize("retries", [0, 3])
def test_an_interrupted_run_is_the_last(how: str, retries: int) -> None:
    life = INTERRUPTIONS[how](Life().enqueue(retries=retries, on_expired=ABORT).lease(1), 2)
    job, last = life.now, life.stream[-1].event
    assert (job.state, job.outcome, job.held) == (State.FAILED, Outcome.ABORTED, False)
    assert isinstance(last, Failed)
    assert last.error.startswith("aborted: ")
    with pytest.raises(IllegalTransition):
        life.lease(9_999)


@pytest.mark.acceptance("P06")
def test_what_its_handler_says_is_taken_as_of_any_other_type() -> None:
    """Only what interrupts a run ends the job: a failure is retried, the last one is held."""
    life = Life().enqueue(retries=1, on_expired=ABORT).lease(1).fail(2, delay=60)
    assert life.now.state is State.RETRY_WAIT
    life.lease(62).fail(63)
    assert (life.now.outcome, life.now.held) == (Outcome.EXHAUSTED, True)
    rejected = Life().enqueue(on_expired=ABORT).lease(1).fail(2, retry=False, interrupted=True)
    assert (rejected.now.outcome, rejected.now.held) == (Outcome.REJECTED, True)
    done = Life().enqueue(on_expired=ABORT).lease(1).complete(2)
    assert done.now.outcome is Outcome.DONE


def test_a_run_that_broke_in_a_stop_is_retried_where_the_type_says_so() -> None:
    life = Life().enqueue().lease(1).fail(2, delay=60, interrupted=True)
    assert life.now.state is State.RETRY_WAIT


def test_the_reason_keeps_within_the_bounds_of_an_error() -> None:
    life = (
        Life().enqueue(on_expired=ABORT).lease(1).fail(2, "x" * ERROR_CHARS_MAX, interrupted=True)
    )
    last = life.stream[-1].event
    assert isinstance(last, Failed)
    assert len(last.error) == ERROR_CHARS_MAX


steps = st.lists(
    st.tuples(st.sampled_from([*INTERRUPTIONS, *ANSWERS]), st.integers(0, 90)), max_size=12
)


@pytest.mark.acceptance("P06")
@given(steps, st.integers(0, 3), st.sampled_from(OnExhausted), st.sampled_from([None, 100.0]))
def test_whatever_happens_nothing_is_leased_after_an_interruption(
    plan: list[tuple[str, int]], retries: int, on_exhausted: OnExhausted, expires: float | None
) -> None:
    given: dict[str, Any] = {} if expires is None else {"expires_at": at(expires)}
    life = Life().enqueue(retries=retries, on_exhausted=on_exhausted, on_expired=ABORT, **given)
    now, interrupted = 0.0, False
    for how, pause in plan:
        now += pause
        if life.now.state in WAITING and life.now.due_at <= at(now):
            assert not interrupted
            life.do(TakeLease(at(now), "w"))
        if life.now.state is State.LEASED:
            (INTERRUPTIONS | ANSWERS)[how](life, now)
            interrupted = how in INTERRUPTIONS
        else:
            with suppress(LeasebookError):
                (INTERRUPTIONS | ANSWERS)[how](life, now)
        assert (life.now.outcome is Outcome.ABORTED) == interrupted
        assert not (interrupted and life.now.held)
        if interrupted:
            break
    assert list(check(life.stream)) == []
