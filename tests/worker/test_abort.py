"""A job of a type that aborts runs once: whatever interrupts it, it ends there and then."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from leasebook.domain.events import Failed
from leasebook.domain.values import Outcome
from leasebook.infra.caller_ports import Receipt
from leasebook.infra.worker.logs import ABORTED, IMPORTANT
from tests.support.workers import WorkerProcess, eventually
from tests.support.yard import SOON_DEAD, Yard
from tests.worker import abort_app

APP = "tests.worker.abort_app:book"

pytestmark = pytest.mark.acceptance("P06")


def worker(yard: Yard, *options: str) -> WorkerProcess:
    return yard.worker(*options, app=APP)


def enqueue(yard: Yard, name: str, **args: str) -> Receipt:
    with yard.caller() as caller:
        receipt: Receipt = abort_app.book.enqueue(caller, name, args)
    return receipt


def assert_aborted(yard: Yard, receipt: Receipt, why: str) -> None:
    """It ended with the run that was interrupted, once and for all, and one ERROR line says so."""
    job = yard.over(receipt)
    assert (job.state, job.outcome, job.held, job.starts) == ("failed", Outcome.ABORTED, False, 1)
    last = yard.events(receipt)[-1]
    assert isinstance(last, Failed)
    assert last.error.startswith("aborted: ")
    assert why in last.error
    [(_, _, evidence)] = [line for line in yard.audit("job_aborted") if line[0] == receipt.id]
    assert evidence == {"name": job.spec.name, "lease": last.lease, "error": last.error}
    assert yard.sql("select 1 from leasebook.jobs where id = %s", receipt.id) == []
    eventually(lambda: errors(yard, receipt), "it is logged")
    [line] = errors(yard, receipt)
    assert (line["event"], line["outcome"], line["name"]) == (ABORTED, "aborted", job.spec.name)
    assert len(yard.effects(receipt)) == 1


def errors(yard: Yard, receipt: Receipt) -> list[dict[str, Any]]:
    """The ERROR lines about a job, of all workers and their heartbeats."""
    lines = [line for worker in yard.workers for line in worker.told("", job=str(receipt.id))]
    return [line for line in lines if line["level"] == "error"]


def nobody_runs_it_again(yard: Yard, receipt: Receipt) -> None:
    """The workers go on with other work, and leave it alone."""
    with yard.caller() as caller:
        others = abort_app.quick.enqueue_many(caller, range(5))
    assert yard.all_over(others) == {"done": 5}
    assert len(yard.effects(receipt)) == 1
    assert len(errors(yard, receipt)) == 1
    assert yard.logged(IMPORTANT) == 0


@pytest.mark.fault
@pytest.mark.parametrize("heart", [False, True], ids=["its heart lives", "its heart dies too"])
@pytest.mark.parametrize("name", ["charge", "charge_thread", "charge_process"])
def test_p06_a_killed_worker_aborts_its_run(yard: Yard, name: str, heart: bool) -> None:
    receipt = enqueue(yard, name, gate="never")
    first = worker(yard)
    yard.began(receipt)
    first.kill(heart=heart)
    worker(yard, *SOON_DEAD)
    assert_aborted(yard, receipt, "its worker died")
    nobody_runs_it_again(yard, receipt)


@pytest.mark.fault
def test_p06_many_runs_of_a_killed_worker_end_together(yard: Yard) -> None:
    with yard.caller() as caller:
        receipts = abort_app.charge.enqueue_many(caller, ["never"] * 40)
        other = abort_app.quick.enqueue(caller)
    first = worker(yard, "--concurrency", "50")
    for each in receipts:
        yard.began(each)
    first.kill()
    worker(yard)
    assert yard.all_over(receipts) == {"aborted": 40}
    assert yard.over(other).state == "done"
    ends = "select count(distinct xid), count(*) from leasebook.job_events where kind = 'failed.v1'"
    assert yard.sql(ends) == [(1, 40)]
    evidence = "select count(distinct xid), count(*) from leasebook.audit_log where kind = %s"
    assert yard.sql(evidence, "job_aborted") == [(1, 40)]
    eventually(lambda: yard.logged(ABORTED) == 40, "one line for each")


@pytest.mark.fault
def test_p06_a_lease_that_ends_aborts_its_run(yard: Yard) -> None:
    receipt = enqueue(yard, "short_lease", gate="never")
    first = worker(yard, "--no-death-detection")
    yard.began(receipt)
    first.kill(heart=True)
    worker(yard, "--no-death-detection")
    assert_aborted(yard, receipt, "its lease ended without an answer")
    nobody_runs_it_again(yard, receipt)


@pytest.mark.parametrize("name", ["hung", "hung_thread", "hung_process"])
def test_p06_a_time_out_aborts_its_run(yard: Yard, name: str) -> None:
    receipt = enqueue(yard, name)
    one = worker(yard)
    assert_aborted(yard, receipt, "it ran past its time-out")
    nobody_runs_it_again(yard, receipt)
    assert one.stop() == 0


@pytest.mark.acceptance("A13")
@pytest.mark.parametrize("name", ["charge", "charge_thread", "charge_process"])
@pytest.mark.parametrize("how", ["the grace ends", "a second signal"])
def test_p06_a_stop_aborts_what_it_interrupts(yard: Yard, name: str, how: str) -> None:
    running = enqueue(yard, name, gate="never")
    one = worker(yard, "--concurrency", "1", "--grace", "0.2" if how == "the grace ends" else "60")
    yard.began(running)
    waiting = enqueue(yard, name, gate="go")
    one.signal(signal.SIGTERM)
    one.tells("worker stopping")
    one.signal(signal.SIGTERM)
    assert one.ended() == 0
    assert_aborted(yard, running, "its worker was stopped in the middle of it")
    assert yard.kinds(waiting) == ["enqueued"]
    yard.open("go")
    worker(yard)
    assert yard.over(waiting).state == "done"
    nobody_runs_it_again(yard, running)


@pytest.mark.acceptance("A13")
def test_p06_a_stop_lets_a_run_finish_that_can(yard: Yard) -> None:
    receipt = enqueue(yard, "charge", gate="go")
    one = worker(yard)
    yard.began(receipt)
    one.signal(signal.SIGTERM)
    one.tells("worker stopping")
    yard.open("go")
    assert one.ended() == 0
    assert yard.over(receipt).outcome == "done"
    assert errors(yard, receipt) == []


@pytest.mark.acceptance("A13")
def test_p06_a_run_that_breaks_because_it_is_stopped_is_not_retried(yard: Yard) -> None:
    receipt = enqueue(yard, "breaks_in_a_stop")
    one = worker(yard, "--grace", "0.2")
    yard.began(receipt)
    assert one.stop() == 0
    assert_aborted(yard, receipt, "ConnectionError: the till does not answer")


@pytest.mark.fault
def test_p06_a_handler_process_that_dies_aborts_its_run(yard: Yard) -> None:
    receipt = enqueue(yard, "dies")
    one = worker(yard)
    assert_aborted(yard, receipt, "HandlerProcessDied: the process of this run ended with exit")
    assert one.stop() == 0


@pytest.mark.fault
def test_p06_a_group_is_aborted_with_all_its_items(yard: Yard) -> None:
    with yard.caller() as caller:
        abort_app.charge_all.enqueue_many(caller, ["a", "b"], group_key="k")
    assert yard.sql("select distinct format from leasebook.group_inbox") == [(2,)]
    first = worker(yard)
    eventually(lambda: yard.effects(), "the group begins")
    first.kill()
    worker(yard)
    [effect] = yard.effects()
    job = yard.over(effect.job_id)
    assert (job.outcome, job.held, len(job.items)) == (Outcome.ABORTED, False, 2)


def test_p06_what_a_handler_raises_is_retried_and_held_as_of_any_type(yard: Yard) -> None:
    receipt = enqueue(yard, "fails")
    one = worker(yard)
    job = yard.over(receipt)
    assert (job.outcome, job.held, job.starts) == (Outcome.EXHAUSTED, True, 2)
    assert yard.audit("job_aborted") == []
    one.tells(IMPORTANT, job=str(receipt.id))
    assert one.stop() == 0
