"""How a lease begins, is renewed and ends, and what each end costs."""

from __future__ import annotations

import pytest

from leasebook.domain import (
    ExpiryCause,
    IllegalTransition,
    InvalidValue,
    NotDue,
    OnExhausted,
    Outcome,
    ReleaseReason,
    StaleLease,
    State,
)
from leasebook.domain.commands import Complete
from leasebook.domain.events import Failed, Heartbeat, Leased, LeaseExpired, RetryScheduled
from tests.support.lives import Life, at, in_state, item


def test_a_lease_lasts_its_term_and_its_token_is_its_version() -> None:
    life = Life().enqueue(lease=600).lease(3, "w1")
    lease = life.now.lease
    assert lease is not None
    assert (lease.token, lease.worker, lease.started_at) == (2, "w1", at(3))
    assert life.now.due_at == at(603)
    assert life.stream[-1].event == Leased(at(3), "w1", at(603), 1)


def test_nothing_is_leased_before_it_is_due() -> None:
    life = Life().enqueue(run_at=10)
    with pytest.raises(NotDue, match="Wait for it"):
        life.lease(9.999)
    assert life.lease(10).now.state is State.LEASED


def test_a_run_at_that_has_passed_means_at_once() -> None:
    assert Life().enqueue(seconds=5, run_at=1).now.due_at == at(5)


@pytest.mark.parametrize("ask_until", [100, 5_000])
def test_a_lease_is_renewed_but_never_past_the_time_out(ask_until: float) -> None:
    life = Life().enqueue(lease=60, timeout=300).lease(0).renew(30, ask_until)
    assert life.now.due_at == at(min(ask_until, 300))
    assert life.stream[-1].event == Heartbeat(at(30), 2, life.now.due_at)


def test_a_renewal_that_adds_nothing_is_no_event() -> None:
    life = Life().enqueue(lease=60, timeout=60).lease(0).renew(30, 90)
    assert len(life.stream) == 2


def test_a_lost_run_is_due_at_once_and_spends_an_attempt() -> None:
    life = Life().enqueue(retries=1).lease(1).expire(4)
    assert life.stream[-1].event == LeaseExpired(at(4), 2, ExpiryCause.WORKER_LOST, at(4))
    assert (life.now.state, life.now.due_at) == (State.QUEUED, at(4))
    assert (life.now.starts, life.now.attempts, life.now.interruptions) == (1, 1, 1)


def test_interrupted_on_its_last_attempt_it_fails_and_never_runs_again() -> None:
    life = Life().enqueue(retries=1).lease(1).expire(4).lease(5).expire(8)
    job = life.now
    assert (job.state, job.outcome, job.held, job.attempts) == (State.FAILED, Outcome.LOST, True, 2)
    last = life.stream[-1].event
    assert isinstance(last, Failed)
    assert last.error == "interrupted on its last attempt: its worker died"
    with pytest.raises(IllegalTransition):
        life.lease(9)


def test_a_lease_ends_by_the_clock_only_when_it_has_ended() -> None:
    life = Life().enqueue(lease=60).lease(0)
    with pytest.raises(NotDue):
        life.expire(59, ExpiryCause.LEASE_ENDED)
    assert life.expire(60, ExpiryCause.LEASE_ENDED).now.state is State.QUEUED
    for cause in (ExpiryCause.WORKER_LOST, ExpiryCause.TIMED_OUT):
        assert Life().enqueue(lease=60).lease(0).expire(1, cause).now.state is State.QUEUED


def test_c04_a_late_answer_is_refused_by_its_token() -> None:
    life = Life().enqueue().lease(0, "frozen").expire(600, ExpiryCause.LEASE_ENDED)
    with pytest.raises(StaleLease, match="no lease is held") as refused:
        life.do(Complete(at(601), 2))
    assert (refused.value.token, refused.value.current) == (2, None)
    life.lease(602, "second")
    with pytest.raises(StaleLease, match="superseded by lease 4"):
        life.do(Complete(at(603), 2))
    assert life.complete(604).now.outcome is Outcome.DONE


@pytest.mark.acceptance("A04")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_failures_and_interruptions_spend_one_budget(retries: int) -> None:
    life, runs = Life().enqueue(retries=retries), 0
    while life.now.state is not State.FAILED:
        life.lease(1_000 * runs)
        runs += 1
        if runs % 2:
            life.expire(1_000 * runs - 999)
        else:
            life.fail(1_000 * runs - 999)
    assert (runs, life.now.attempts) == (retries + 1, retries + 1)
    assert life.now.budget_left == 0


@pytest.mark.acceptance("A04")
def test_a_failure_is_retried_after_its_delay_until_the_budget_is_spent() -> None:
    life = Life().enqueue(retries=1).lease(1).fail(2, "boom", delay=60)
    assert life.stream[-1].event == RetryScheduled(at(2), 2, "boom", at(62))
    with pytest.raises(NotDue):
        life.lease(61)
    life.lease(62).fail(63)
    assert (life.now.state, life.now.outcome, life.now.held) == (
        State.FAILED,
        Outcome.EXHAUSTED,
        True,
    )


def test_a_failure_without_retry_ends_at_once() -> None:
    life = Life().enqueue(retries=3).lease(1).fail(2, retry=False)
    assert (life.now.outcome, life.now.held, life.now.attempts) == (Outcome.REJECTED, True, 1)


@pytest.mark.parametrize("reason", list(ReleaseReason))
def test_a_release_spends_nothing(reason: ReleaseReason) -> None:
    life = Life().enqueue(retries=0).lease(1).release(2, reason, delay=30, note="later")
    job = life.now
    assert (job.state, job.due_at, job.starts, job.attempts) == (State.QUEUED, at(32), 1, 0)
    assert life.lease(32).complete(33).now.state is State.DONE


def test_forty_thousand_snoozes_neither_spend_nor_inflate() -> None:
    """Snoozes are counted apart, and what comes after them waits for failures only (C47)."""
    life = Life().enqueue(retries=1)
    for second in range(40_000):
        life.lease(second).release(second, ReleaseReason.SNOOZE, delay=1)
        life.stream.clear()
    assert (life.now.starts, life.now.attempts) == (40_000, 0)
    life.lease(50_000).fail(50_001)
    assert (life.now.state, life.now.attempts) == (State.RETRY_WAIT, 1)
    life.lease(50_061).fail(50_062)
    assert (life.now.outcome, life.now.starts) == (Outcome.EXHAUSTED, 40_002)


def test_a_type_that_drops_does_not_hold() -> None:
    def leased() -> Life:
        return Life().enqueue(retries=0, on_exhausted=OnExhausted.DROP).lease(1)

    assert not leased().fail(2).now.held
    assert not leased().fail(2, retry=False).now.held
    assert not leased().expire(2).now.held


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf"), 1e300])
def test_a_delay_that_is_no_time_is_refused_with_its_name(delay: float) -> None:
    for act in (Life.fail, Life.release):
        life = Life().enqueue().lease(1)
        with pytest.raises(InvalidValue) as refused:
            act(life, 2, delay=delay)
        assert refused.value.field == "delay"


def test_expiry_ends_a_waiting_job_when_its_turn_comes() -> None:
    for life in (Life().enqueue(expires_at=at(10)), Life().open_group(expires_at=at(10))):
        life.lease(10)
        job = life.now
        assert (job.state, job.outcome, job.held) == (State.FAILED, Outcome.EXPIRED, False)
        assert (job.starts, job.attempts) == (0, 0)


def test_expiry_never_ends_a_leased_or_retrying_job() -> None:
    leased = Life().enqueue(expires_at=at(10)).lease(9).complete(11)
    assert leased.now.state is State.DONE
    retrying = Life().enqueue(expires_at=at(10)).lease(1).fail(2, delay=60).lease(62)
    assert retrying.now.state is State.LEASED


def test_a_job_that_would_expire_before_its_start_is_refused() -> None:
    with pytest.raises(InvalidValue, match="Let it expire later"):
        Life().enqueue(run_at=10, expires_at=at(10))


def test_time_never_runs_backwards_in_a_stream() -> None:
    """A command with an older time, from a clock that was set back, takes the newest event's."""
    life = Life().enqueue(seconds=10, retries=9).lease(5).renew(4, 2_000).expire(3)
    life.lease(2).fail(1, delay=0).lease(0).release(0).lease(0).complete(0)
    assert [recorded.at for recorded in life.stream] == [at(10)] * len(life.stream)
    group = Life().open_group(item(1), seconds=10).join(item(2), seconds=5).close(3)
    assert [recorded.at for recorded in group.stream] == [at(10)] * 4


def test_completion_needs_an_outcome_that_is_a_success() -> None:
    assert in_state(State.LEASED).complete(2, outcome=Outcome.SKIPPED).now.state is State.DONE
    with pytest.raises(InvalidValue, match="outcome"):
        in_state(State.LEASED).complete(2, outcome=Outcome.LOST)
