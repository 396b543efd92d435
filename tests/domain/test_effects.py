"""Receipts: begun once, done once, kept by later runs, and uncertain when a run leaves them so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve as replace

from leasebook.domain import Outcome, State, decide
from leasebook.domain.commands import CompleteEffect, StartEffect
from leasebook.domain.errors import EffectRefused, EffectUncertain, InvalidValue
from leasebook.domain.events import Failed
from leasebook.domain.job import Effect
from leasebook.domain.limits import EFFECTS_MAX
from leasebook.domain.values import EffectKind, ExpiryCause, OnExhausted, OnExpired, ReleaseReason
from tests.support.lives import Life, at

CALL, MUTATION, SNAPSHOT = EffectKind.CALL, EffectKind.MUTATION, EffectKind.SNAPSHOT


def begun(**given: Any) -> Life:
    return Life().enqueue(**given).lease(1).begin(2)


ENDS: dict[str, Callable[[Life], Life]] = {
    "returned": lambda life: life.complete(3),
    "failed": lambda life: life.fail(3),
    "rejected": lambda life: life.fail(3, retry=False),
    "snoozed": lambda life: life.release(3, ReleaseReason.SNOOZE),
    "stopped": lambda life: life.release(3, ReleaseReason.SHUTDOWN),
    "lost": lambda life: life.expire(3),
    "timed out": lambda life: life.expire(3, ExpiryCause.TIMED_OUT),
    "lease ended": lambda life: life.expire(1_000, ExpiryCause.LEASE_ENDED),
}


@pytest.mark.acceptance("Q11")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("policy", [{}, {"on_exhausted": OnExhausted.DROP}, {"retries": 0}])
def test_however_a_run_ends_in_the_middle_of_an_effect_its_job_is_held(
    end: str, policy: dict[str, object]
) -> None:
    """Also of a type whose failures are dropped, or that aborts."""
    for given in (policy, {**policy, "on_expired": OnExpired.ABORT}):
        job = ENDS[end](begun(**given)).now
        assert (job.state, job.outcome, job.held) == (State.FAILED, Outcome.UNCERTAIN, True)
        assert job.uncertain == Effect("post:42", "chat", CALL)


def test_the_error_names_the_effect_and_what_the_run_said() -> None:
    last = begun().fail(3, "TimeoutError: no answer").stream[-1].event
    assert isinstance(last, Failed)
    text = "effect post:42 to chat was begun and its end is not known: TimeoutError: no answer"
    assert last.error == text


@pytest.mark.acceptance("Q05")
def test_later_runs_keep_what_was_done() -> None:
    life = begun().effect(3).fail(4).lease(70).begin(71)
    assert life.now.effects == (Effect("post:42", "chat", CALL, '{"ts":1}'),)
    assert [each.event.kind for each in life.stream].count("effect_started") == 1
    # The first receipt is the one that counts.
    command = CompleteEffect(at(72), life.token, "post:42", "chat", CALL, "2")
    assert decide(life.now, command) == ()
    assert life.complete(73).now.outcome is Outcome.DONE


@pytest.mark.acceptance("Q09")
def test_what_was_released_may_be_begun_again() -> None:
    life = begun().reject(3).begin(4).reject(5)
    assert life.now.effects == ()
    assert life.fail(6).now.state is State.RETRY_WAIT


@pytest.mark.acceptance("Q12")
@pytest.mark.parametrize("is_done", [False, True])
def test_a_key_stands_for_one_destination_and_kind(is_done: bool) -> None:
    life = begun().effect(3) if is_done else begun()
    token = life.token
    for to, kind in (("mail", CALL), ("chat", MUTATION), ("chat", SNAPSHOT)):
        with pytest.raises(EffectRefused, match="it is a call to 'chat'"):
            decide(life.now, StartEffect(at(4), token, "post:42", to, kind))
        with pytest.raises(EffectRefused, match="Give each effect a key of its own"):
            decide(life.now, CompleteEffect(at(4), token, "post:42", to, kind, "1"))
    # Each destination has its own receipt.
    life.begin(5, "post:43", "mail").effect(6, "post:43", "mail")
    assert {each.destination for each in life.now.effects} == {"chat", "mail"}


def test_only_what_is_in_progress_can_end() -> None:
    life = Life().enqueue().lease(1)
    with pytest.raises(EffectRefused, match="it was not begun"):
        life.effect(2)
    with pytest.raises(EffectRefused, match="it was not begun"):
        life.reject(2)
    with pytest.raises(EffectUncertain, match="is not begun again"):
        life.begin(2).begin(3)
    with pytest.raises(EffectRefused, match="it is done"):
        life.effect(4).reject(5)


@pytest.mark.parametrize("kind", [MUTATION, SNAPSHOT])
def test_what_commits_with_its_receipt_needs_no_begin(kind: EffectKind) -> None:
    life = Life().enqueue().lease(1)
    life.do(CompleteEffect(at(2), life.token, "plan", "-", kind, "1"))
    assert life.now.uncertain is None
    assert life.do(CompleteEffect(at(3), life.token, "plan", "-", kind, "2")) == ()
    assert life.complete(4).now.state is State.DONE


def test_keys_and_numbers_of_effects_are_bounded() -> None:
    life = Life().enqueue().lease(1)
    for key, to in (("x" * 241, "chat"), ("", "chat"), ("post", "x" * 513), ("post", "\0")):
        with pytest.raises(InvalidValue):
            life.begin(2, key, to)
    full = tuple(Effect(str(n), "chat", CALL, "1") for n in range(EFFECTS_MAX))
    life.job = replace(life.now, effects=full)
    with pytest.raises(EffectRefused, match="Split the work into several jobs"):
        life.begin(3)
