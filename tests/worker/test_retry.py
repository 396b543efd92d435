"""When a run fails: the delays of its policy, and at last one line that nobody can miss."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from leasebook import Retry
from leasebook.domain.events import Event, Failed, Leased, Released, RetryScheduled
from leasebook.domain.values import Outcome, ReleaseReason
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

IMPORTANT = "[IMPORTANT] Failed on job"
PASSWORD = "hunter2hunter2"
TEXT = f"cannot reach postgresql://shop:{PASSWORD}@db.example/shop"


def delays(events: Sequence[Event]) -> list[float]:
    """What each failure asked for, in seconds."""
    return [
        (each.due_at - each.at).total_seconds()
        for each in events
        if isinstance(each, RetryScheduled)
    ]


@pytest.mark.acceptance("A04")
@pytest.mark.parametrize("name", ["failing", "listed", "growing"])
def test_a04_a_failed_job_is_retried_as_its_policy_says(yard: Yard, name: str) -> None:
    job_type = app.book.find(name)
    policy: Retry = job_type.retry
    with yard.caller() as caller:
        receipt = app.book.enqueue(caller, name, {"text": "no"} if name == "failing" else {})
    yard.worker("--poll", "0.05")
    job = yard.over(receipt)
    assert (job.outcome, job.starts, job.attempts) == (
        Outcome.EXHAUSTED, policy.retries + 1, policy.retries + 1,
    )  # fmt: skip
    assert len(yard.effects(receipt)) == policy.retries + 1
    wanted = [policy.seconds(job.id, attempt) for attempt in range(1, policy.retries + 1)]
    assert delays(yard.events(receipt)) == pytest.approx(wanted, abs=1e-5)
    for before, after in zip(yard.events(receipt), yard.events(receipt)[1:], strict=False):
        if isinstance(before, RetryScheduled):
            assert isinstance(after, Leased)
            assert before.due_at <= after.at


@pytest.mark.acceptance("A05")
def test_a05_the_last_failure_is_one_important_line_without_secrets(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.failing.enqueue(caller, TEXT)
    worker = yard.worker("--poll", "0.05")
    yard.over(receipt)
    line = worker.tells(IMPORTANT)
    assert worker.stop() == 0
    assert len(worker.told(IMPORTANT)) == 1
    assert (line["level"], line["job"], line["name"], line["attempts"]) == (
        "error", str(receipt.id), "failing", "3/3",
    )  # fmt: skip
    assert line["error"].startswith("ValueError: cannot reach postgresql://shop:***@db.example")
    assert PASSWORD not in "".join(worker.raw)
    written = yard.sql("select data::text from leasebook.job_events where kind <> 'enqueued.v1'")
    assert PASSWORD not in str(written)
    [failed] = [each for each in yard.events(receipt) if isinstance(each, Failed)]
    assert failed.error == line["error"]


@pytest.mark.acceptance("A05")
def test_a05_the_line_reads_by_itself_as_text(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.says.enqueue(caller, "fail")
    worker = yard.start("--log-format", "text", "--drain")
    yard.may_alarm = True  # In text there is no JSON.
    assert worker.ended() == 0
    job = yard.over(receipt)
    assert (job.outcome, job.starts) == (Outcome.REJECTED, 1)
    lines = [line for line in worker.raw if IMPORTANT in line]
    assert len(lines) == 1
    assert f"{IMPORTANT} job={receipt.id} name=says attempts=1/2" in lines[0]
    assert "abc123secret" not in lines[0]


@pytest.mark.acceptance("P07")
@pytest.mark.parametrize("how", ["snooze", "rate limited"])
def test_p07_a_run_that_is_put_off_spends_nothing(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        receipt = app.says.enqueue(caller, how)
    yard.worker("--poll", "0.05")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 0)
    released = yard.events(receipt)[2]
    assert isinstance(released, Released)
    wanted = ReleaseReason.SNOOZE if how == "snooze" else ReleaseReason.RATE_LIMITED
    assert released.reason is wanted
    assert released.due_at - released.at == timedelta(seconds=0.2)
    again = yard.events(receipt)[3]
    assert again.at >= released.due_at


@pytest.mark.acceptance("P07")
def test_p07_a_handler_chooses_the_delay_or_the_end(yard: Yard) -> None:
    with yard.caller() as caller:
        again = app.says.enqueue(caller, "retry in")
        rejected = app.says.enqueue(caller, "fail")
        failed = app.says.enqueue(caller, "fail, retry")
    worker = yard.worker("--poll", "0.05")
    job = yard.over(again)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    assert delays(yard.events(again)) == [0.4]
    job = yard.over(rejected)
    assert (job.outcome, job.starts, job.held) == (Outcome.REJECTED, 1, True)
    job = yard.over(failed)
    assert (job.outcome, job.starts) == (Outcome.EXHAUSTED, 2)
    eventually(lambda: len(worker.told(IMPORTANT)) == 2, "both ends are logged")
