"""Effects as handlers know them: done once, resumed from their receipts, uncertain, rejected."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Mapping
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
from tests.support.workers import WorkerProcess, eventually
from tests.support.yard import Yard
from tests.worker import effects_app as app

APP = "tests.worker.effects_app:book"


class Outside:
    """One worker, and jobs by a name of their own."""

    def __init__(self, yard: Yard, **jobs: tuple[str, Mapping[str, object]]) -> None:
        self.yard = yard
        with yard.caller() as caller:
            self.jobs = {
                each: app.book.enqueue(caller, name, args) for each, (name, args) in jobs.items()
            }
        self.worker: WorkerProcess = yard.worker(app=APP)
        yard.all_over(list(self.jobs.values()))

    def result(self, each: str) -> Any:
        completed = self.yard.events(self.jobs[each])[-1]
        assert isinstance(completed, Completed), completed
        return json.loads(completed.result)

    def notes(self, each: str) -> list[str]:
        return [call.note for call in self.yard.effects(self.jobs[each])]

    def starts(self, each: str) -> list[int]:
        return [call.start for call in self.yard.effects(self.jobs[each])]

    def kinds(self, each: str) -> list[str]:
        return self.yard.kinds(self.jobs[each])


def plain(*names: str) -> dict[str, tuple[str, Mapping[str, object]]]:
    """Jobs without arguments, by their own names."""
    return {name: (name, {}) for name in names}


@pytest.mark.acceptance("Q05")
def test_an_effect_is_begun_on_record_and_its_receipt_kept(yard: Yard) -> None:
    """In coroutines, threads and processes."""
    out = Outside(yard, **plain("posts", "posts_thread", "posts_process"))
    for each, receipt in out.jobs.items():
        kinds = ["enqueued", "leased", "effect_started", "effect_completed", "completed"]
        assert out.kinds(each) == kinds
        assert out.result(each) == {"ts": 1}
        began, done = yard.events(receipt)[2:4]
        assert isinstance(began, EffectStarted)
        assert isinstance(done, EffectCompleted)
        # The begin was committed before the call was made, and the call before the receipt.
        [call] = yard.effects(receipt)
        assert began.at < call.at < done.at
        assert (began.destination, began.effect) == ("chat", EffectKind.CALL)


@pytest.mark.acceptance("Q05")
def test_later_runs_get_what_the_first_has_done_and_decided(yard: Yard) -> None:
    out = Outside(yard, **plain("once", "once_thread", "decides", "decides_thread", "forgets"))
    for each in ("once", "once_thread"):
        assert (out.result(each), out.notes(each)) == ("start 1", ["posted"])
        assert yard.job(out.jobs[each]).starts == 3
    for each in ("decides", "decides_thread"):
        assert out.result(each) == {"start": 1}
        assert out.kinds(each).count("effect_completed") == 1
    # A handler that does not look whether it was done is told of.
    assert out.worker.tells("effect done again")["effect"] == "post:42"
    assert out.result("forgets") == {"start": 1}


@pytest.mark.acceptance("Q12")
def test_a_key_stands_for_one_destination_and_one_kind(yard: Yard) -> None:
    out = Outside(yard, **plain("refuses", "locks"))
    twice, destination, kind, long = out.result("refuses")
    assert "in progress in this very run" in twice
    assert "it is a call to 'chat'. Give each effect a key of its own" in destination
    assert "it is a snapshot to '-'" in kind
    assert long == "InvalidValue"
    # A transaction of the run's own that holds the row would keep the effect, and all, waiting.
    wanted = "a transaction of this run has locked the job's row. Commit or roll back first."
    assert wanted in out.result("locks")


@pytest.mark.acceptance("Q11")
def test_a_definite_rejection_releases_the_effect(yard: Yard) -> None:
    statuses = (400, 401, 403, 404, 405, 429)
    out = Outside(
        yard,
        **{f"http {each}": ("answers", {"how": "http", "status": each}) for each in statuses},
        released=("answers", {"how": "released"}),
        rejected=("answers", {"how": "rejected"}),
    )
    for status in statuses:
        receipt = out.jobs[f"http {status}"]
        events = yard.events(receipt)
        [released] = [each for each in events if isinstance(each, EffectReleased)]
        assert released.reason == f"HTTP {status}"
        end = next(each for each in events if isinstance(each, RetryScheduled | Released))
        if status == 429:
            assert isinstance(end, Released)
            assert end.reason is ReleaseReason.RATE_LIMITED
            assert yard.job(receipt).attempts == 0
        else:
            assert isinstance(end, RetryScheduled)
            assert "s3cret" not in end.error
            assert "abcdef" not in end.error
        assert yard.job(receipt).outcome is Outcome.DONE
        assert yard.kinds(receipt).count("effect_started") == 2
    assert out.kinds("released")[-2:] == ["effect_released", "completed"]
    last = yard.events(out.jobs["rejected"])[-1]
    assert isinstance(last, Failed)
    assert (last.outcome, last.error) == (Outcome.REJECTED, "unknown channel, token=***")
    assert yard.job(out.jobs["rejected"]).uncertain is None


@pytest.mark.acceptance("Q11", "Q05")
def test_everything_else_leaves_it_uncertain_and_the_job_held(yard: Yard) -> None:
    errors = {
        "lost": "no answer",
        "http 503": "HTTP 503",
        "http 409": "HTTP 409",
        "nothing": "without complete() or release()",
    }
    out = Outside(
        yard,
        lost=("answers", {"how": "lost"}),
        nothing=("answers", {"how": "nothing"}),
        failed=("answers", {"how": "done, then failed"}),
        bad=("answers", {"how": "bad receipt"}),
        **{f"http {each}": ("answers", {"how": "http", "status": each}) for each in (503, 409)},
    )
    for each, error in errors.items():
        job, last = yard.job(out.jobs[each]), yard.events(out.jobs[each])[-1]
        assert isinstance(last, Failed)
        assert (job.outcome, job.held, job.starts) == (Outcome.UNCERTAIN, True, 1)
        assert job.uncertain is not None
        assert job.uncertain.key == "post:42"
        assert "effect post:42 to chat was begun and its end is not known" in last.error
        assert error in last.error
    # What goes wrong after the handler has said that it is done does not make it undone.
    assert (out.result("failed"), out.notes("failed")) == (1, ["done, then failed"])
    bad = yard.job(out.jobs["bad"])
    assert (bad.outcome, bad.uncertain) == (Outcome.REJECTED, None)
    assert [each.receipt for each in bad.effects] == ["null"]


@pytest.mark.acceptance("Q05", "Q09")
def test_changes_of_the_business_own_are_made_once(yard: Yard) -> None:
    fails = ("", "inside", "before the commit", "after the commit")
    out = Outside(
        yard,
        **{f"credit {each}": ("credits", {"fail": each}) for each in fails},
        settled=("settles", {"how": ""}),
        again=("settles", {"how": "rolled back"}),
        broke=("settles", {"how": "fails afterwards"}),
    )
    for fail in fails:
        first = 1 if fail in ("", "after the commit") else 2
        assert out.starts(f"credit {fail}") == [first]
        assert out.result(f"credit {fail}") == {"start": first}
        assert yard.job(out.jobs[f"credit {fail}"]).starts == (1 if fail == "" else 2)
    # The job is done together with the change; what the handler returns later is not kept.
    assert out.kinds("settled") == ["enqueued", "leased", "completed"]
    assert (out.result("settled"), out.notes("settled")) == ({"start": 1}, ["settled"])
    assert out.kinds("again")[2] == "retry_scheduled"
    assert (out.result("again"), out.starts("again")) == ({"start": 2}, [2])
    assert (out.result("broke"), out.starts("broke")) == ({"start": 1}, [1])
    eventually(lambda: yard.audit("late_write_refused"), "the error is kept as evidence")
    assert out.worker.stop() == 0
    [(job_id, _, detail)] = yard.audit("late_write_refused")
    assert (job_id, detail["answer"]) == (out.jobs["broke"].id, "Broke")


POINTS = ("before the effect", "begun", "called", "before the receipt", "after the receipt")


@pytest.mark.fault
@pytest.mark.acceptance("Q05", "Q11")
def test_a_worker_killed_anywhere_around_an_effect(yard: Yard) -> None:
    for point in POINTS:
        with yard.caller() as caller:
            receipt = app.posts.enqueue(caller, point)
        if not yard.workers:
            yard.worker(app=APP)
        yard.workers[-1].ended()
        yard.worker(app=APP)
        resumed_or_uncertain(yard, receipt, point)


@pytest.mark.fault
@pytest.mark.acceptance("Q05", "Q11")
def test_a_handler_process_killed_anywhere_around_an_effect(yard: Yard) -> None:
    with yard.caller() as caller:
        receipts = {point: app.posts_process.enqueue(caller, point) for point in POINTS}
    yard.worker(app=APP)
    for point, receipt in receipts.items():
        resumed_or_uncertain(yard, receipt, point)


def resumed_or_uncertain(yard: Yard, receipt: Receipt, point: str) -> None:
    job, notes = yard.over(receipt), [each.note for each in yard.effects(receipt)]
    match point:
        case "before the effect":
            assert (job.outcome, notes) == (Outcome.DONE, ["posted"])
        case "after the receipt":
            assert (job.outcome, notes) == (Outcome.DONE, ["posted", "resumed"])
            assert job.starts == 2
        case _:
            assert (job.outcome, job.held, job.starts) == (Outcome.UNCERTAIN, True, 1)
            assert notes == ([] if point == "begun" else ["posted"])


@pytest.mark.fault
@pytest.mark.acceptance("Q08", "Q11")
def test_a_stale_owner_is_refused_whatever_it_writes(yard: Yard) -> None:
    """A worker freezes, another gets its jobs, and it goes on with the leases it had."""
    frozen = yard.worker("--no-death-detection", app=APP)
    yard.beating(frozen)
    with yard.caller() as caller:
        thread = app.book.enqueue(caller, "stale_thread", {})
        effect = app.book.enqueue(caller, "stale", {})
    for each in (thread, effect):
        yard.began(each)
    other = yard.worker("--no-death-detection", app=APP)
    yard.beating(other)
    frozen.signal(signal.SIGSTOP, heart=True)
    yard.began(thread, 2)
    # The effect in progress is nobody's to repeat.
    assert yard.over(effect).outcome is Outcome.UNCERTAIN
    yard.open("1")
    frozen.signal(signal.SIGCONT, heart=True)
    frozen.tells("late result refused", answer="CompleteEffect")
    frozen.tells("late result refused", answer="Succeeded", job=str(thread.id))
    told = {each.note for each in yard.effects(thread)}
    assert told == {"posted", "effect snapshot fence mutation complete"}
    yard.open("2")
    assert yard.over(thread).outcome is Outcome.DONE

    def refused() -> list[Any]:
        return [detail for _, _, detail in yard.audit("late_write_refused")]

    def answers() -> Counter[str]:
        return Counter(detail["answer"] for detail in refused())

    eventually(lambda: answers()["CompleteEffect"] == 2, "both of its receipts are refused")
    assert answers()["StartEffect"] == 1
    lines = refused()
    # Whoever has to find out what became of the effect finds its late receipt.
    [late] = [detail for detail in lines if detail.get("receipt") == {"start": 1}]
    assert (late["effect"], late["to"]) == ("post:1", "chat")
    assert yard.kinds(effect).count("effect_completed") == 0
    assert (frozen.stop(), other.stop()) == (0, 0)


@pytest.mark.acceptance("Q08")
def test_a_handler_that_hangs_in_a_fence_holds_nobody_else_up(yard: Yard) -> None:
    """Its slot is free after its time-out; its job ends when its transaction does."""
    with yard.caller() as caller:
        hung = app.hangs_fenced.enqueue(caller, "go")
    worker = yard.worker("--concurrency", "1", app=APP)
    yard.began(hung)
    for _ in range(3):
        with yard.caller() as caller:
            receipt = app.posts.enqueue(caller)
        assert yard.over(receipt).outcome is Outcome.DONE
    assert yard.job(hung).state == "leased"
    assert worker.told("store unavailable") == []
    yard.open("go")
    assert yard.over(hung).outcome is Outcome.LOST
