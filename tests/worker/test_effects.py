"""Effects as handlers know them: done once, resumed from their receipts, uncertain, rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leasebook.domain.events import (
    Completed,
    EffectCompleted,
    EffectReleased,
    EffectStarted,
    Failed,
    Released,
    RetryScheduled,
)
from leasebook.domain.values import EffectKind, Outcome, ReleaseReason
from leasebook.infra.caller_ports import Receipt
from tests.support.yard import Yard
from tests.worker import effects_app as app

APP = "tests.worker.effects_app:book"


def enqueue(yard: Yard, name: str, **args: object) -> Receipt:
    with yard.caller() as caller:
        return app.book.enqueue(caller, name, args)


def ended(yard: Yard, name: str, **args: object) -> Receipt:
    """Enqueue it, and wait for its end."""
    receipt = enqueue(yard, name, **args)
    yard.worker(app=APP)
    yard.over(receipt)
    return receipt


def result(yard: Yard, receipt: Receipt) -> Any:
    completed = yard.events(receipt)[-1]
    assert isinstance(completed, Completed)
    return json.loads(completed.result)


def notes(yard: Yard, receipt: Receipt) -> list[str]:
    return [each.note for each in yard.effects(receipt)]


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize("name", ["posts", "posts_thread", "posts_process"])
def test_an_effect_is_begun_on_record_and_its_receipt_kept(yard: Yard, name: str) -> None:
    receipt = ended(yard, name)
    kinds = ["enqueued", "leased", "effect_started", "effect_completed", "completed"]
    assert yard.kinds(receipt) == kinds
    assert result(yard, receipt) == {"ts": 1}
    began, done = yard.events(receipt)[2:4]
    assert isinstance(began, EffectStarted)
    assert isinstance(done, EffectCompleted)
    # The begin was committed before the call was made, and the call before the receipt.
    [call] = yard.effects(receipt)
    assert began.at < call.at < done.at
    assert (began.destination, began.effect) == ("chat", EffectKind.CALL)


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize("name", ["once", "once_thread"])
def test_later_runs_get_the_receipt_of_the_first(yard: Yard, name: str) -> None:
    receipt = ended(yard, name)
    assert result(yard, receipt) == "start 1"
    assert notes(yard, receipt) == ["posted"]
    assert yard.job(receipt).starts == 3


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize("name", ["decides", "decides_thread"])
def test_a_decision_is_frozen_by_the_first_run(yard: Yard, name: str) -> None:
    receipt = ended(yard, name)
    assert result(yard, receipt) == {"start": 1}
    assert yard.kinds(receipt).count("effect_completed") == 1


@pytest.mark.acceptance("Q12")
def test_a_key_stands_for_one_destination_and_one_kind(yard: Yard) -> None:
    twice, destination, kind, long = result(yard, ended(yard, "refuses"))
    assert "in progress in this very run" in twice
    assert "it is a call to 'chat'. Give each effect a key of its own" in destination
    assert "it is a snapshot to '-'" in kind
    assert long == "InvalidValue"


@pytest.mark.acceptance("Q11")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405])
def test_a_definite_rejection_releases_the_effect(yard: Yard, status: int) -> None:
    receipt = ended(yard, "answers", how="http", status=status)
    released = next(each for each in yard.events(receipt) if isinstance(each, EffectReleased))
    assert released.reason == f"HTTP {status}"
    failed = next(each for each in yard.events(receipt) if isinstance(each, RetryScheduled))
    assert "s3cret" not in failed.error
    assert "abcdef" not in failed.error
    assert yard.job(receipt).outcome is Outcome.DONE
    assert yard.kinds(receipt).count("effect_started") == 2


@pytest.mark.acceptance("Q11")
def test_a_limit_releases_the_effect_and_the_run_spends_nothing(yard: Yard) -> None:
    receipt = ended(yard, "answers", how="http", status=429)
    assert [each.reason for each in yard.events(receipt) if isinstance(each, EffectReleased)] == [
        "HTTP 429"
    ]
    given_back = next(each for each in yard.events(receipt) if isinstance(each, Released))
    assert given_back.reason is ReleaseReason.RATE_LIMITED
    assert (yard.job(receipt).attempts, yard.job(receipt).outcome) == (0, Outcome.DONE)


@pytest.mark.acceptance("Q11")
def test_the_handlers_word_releases_it(yard: Yard) -> None:
    released = ended(yard, "answers", how="released")
    assert yard.kinds(released)[-2:] == ["effect_released", "completed"]
    rejected = ended(yard, "answers", how="rejected")
    last = yard.events(rejected)[-1]
    assert isinstance(last, Failed)
    assert (last.outcome, last.error) == (Outcome.REJECTED, "unknown channel, token=***")
    assert yard.job(rejected).uncertain is None


@pytest.mark.acceptance("Q11")
@pytest.mark.parametrize(
    ("how", "status", "error"),
    [
        ("lost", 0, "no answer"),
        ("http", 503, "HTTP 503"),
        ("http", 409, "HTTP 409"),
        ("nothing", 0, "without complete() or release()"),
    ],
)
def test_everything_else_leaves_it_uncertain_and_the_job_held(
    yard: Yard, how: str, status: int, error: str
) -> None:
    receipt = ended(yard, "answers", how=how, status=status)
    job, last = yard.job(receipt), yard.events(receipt)[-1]
    assert isinstance(last, Failed)
    assert (job.outcome, job.held, job.starts) == (Outcome.UNCERTAIN, True, 1)
    assert job.uncertain is not None
    assert job.uncertain.key == "post:42"
    assert "effect post:42 to chat was begun and its end is not known" in last.error
    assert error in last.error


@pytest.mark.acceptance("Q05")
def test_what_goes_wrong_after_complete_does_not_make_it_undone(yard: Yard) -> None:
    receipt = ended(yard, "answers", how="done, then failed")
    assert (result(yard, receipt), notes(yard, receipt)) == (1, ["done, then failed"])
    bad = ended(yard, "answers", how="bad receipt")
    job = yard.job(bad)
    assert (job.outcome, job.uncertain) == (Outcome.REJECTED, None)
    assert [each.receipt for each in job.effects] == ["null"]


@pytest.mark.acceptance("Q05")
def test_an_effect_that_is_done_again_is_told_of(yard: Yard) -> None:
    receipt = enqueue(yard, "forgets")
    worker = yard.worker(app=APP)
    yard.over(receipt)
    assert worker.tells("effect done again")["effect"] == "post:42"
    assert result(yard, receipt) == {"start": 1}


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize(
    ("fail", "starts"),
    [("", 1), ("inside", 2), ("before the commit", 2), ("after the commit", 2)],
)
def test_a_mutation_and_its_receipt_commit_together(yard: Yard, fail: str, starts: int) -> None:
    receipt = ended(yard, "credits", fail=fail)
    credited = [each.start for each in yard.effects(receipt)]
    first = 1 if fail in ("", "after the commit") else 2
    assert credited == [first]
    assert result(yard, receipt) == {"start": first}
    assert yard.job(receipt).starts == starts


@pytest.mark.acceptance("Q09")
def test_a_job_is_done_together_with_the_business_change(yard: Yard) -> None:
    receipt = ended(yard, "settles", how="")
    worker = yard.workers[0]
    assert (result(yard, receipt), notes(yard, receipt)) == ({"start": 1}, ["settled"])
    assert worker.stop() == 0
    assert yard.audit("late_write_refused") == []
    assert yard.kinds(receipt) == ["enqueued", "leased", "completed"]


def test_rolled_back_it_is_not_done(yard: Yard) -> None:
    receipt = ended(yard, "settles", how="rolled back")
    assert yard.kinds(receipt)[2] == "retry_scheduled"
    assert result(yard, receipt) == {"start": 2}
    assert [each.start for each in yard.effects(receipt)] == [2]


def test_an_error_after_it_was_done_is_kept_as_evidence(yard: Yard) -> None:
    receipt = ended(yard, "settles", how="fails afterwards")
    yard.workers[0].tells("late result refused")
    [(job_id, _, detail)] = yard.audit("late_write_refused")
    assert (job_id, detail["answer"]) == (receipt.id, "Broke")
    assert result(yard, receipt) == {"start": 1}


def test_no_effect_begins_while_a_transaction_of_the_run_holds_its_row(yard: Yard) -> None:
    said = result(yard, ended(yard, "locks"))
    assert "a transaction of this run has locked the job's row. Commit or roll back first." in said
