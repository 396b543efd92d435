"""Worker processes die in every way, and no job with them."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from functools import partial

import pytest

from leasebook.domain.events import Failed, Leased, LeaseExpired
from leasebook.domain.values import ExpiryCause, Outcome
from leasebook.infra.caller_ports import Receipt
from tests.support.workers import HEART_STARTED, STARTED, WorkerProcess, eventually, running
from tests.support.yard import SOON_DEAD, Yard
from tests.worker import app

pytestmark = pytest.mark.fault
IMPORTANT = "[IMPORTANT] Failed on job"


@pytest.mark.acceptance("A03")
@pytest.mark.case("C01")
def test_c01_a_killed_worker_is_noticed_by_its_own_heartbeat_at_once(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    first = yard.worker()
    yard.began(receipt)
    first.kill()
    second = yard.worker()
    yard.began(receipt, 2)
    yard.open("go")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    expired = yard.events(receipt)[2]
    assert isinstance(expired, LeaseExpired)
    assert expired.cause is ExpiryCause.WORKER_LOST
    assert expired.due_at == expired.at
    assert len(yard.audit("worker_died")) == 1
    assert [each.pid for each in yard.effects(receipt)] == [first.pid, second.pid]


@pytest.mark.acceptance("A03")
@pytest.mark.case("C01")
def test_a03_without_death_detection_the_job_is_due_when_its_lease_ends(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.short_lease.enqueue(caller, "go")
    first = yard.worker("--no-death-detection")
    yard.began(receipt)
    first.kill(heart=True)
    yard.worker("--no-death-detection")
    yard.began(receipt, 2)
    yard.open("go")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts, job.interruptions) == ("done", 2, 1, 1)
    leased, expired, again = (
        each for each in yard.events(receipt) if isinstance(each, Leased | LeaseExpired)
    )
    assert isinstance(expired, LeaseExpired)
    assert expired.cause is ExpiryCause.LEASE_ENDED
    # Sixty seconds is the delay after a failure; an interruption waits for nothing.
    assert again.at - leased.at < timedelta(seconds=60)
    assert yard.audit("worker_died") == []


@pytest.mark.acceptance("A03", "A05")
@pytest.mark.parametrize("options", [(), ("--no-death-detection",)])
def test_a03_interrupted_on_its_last_attempt_it_fails_and_never_runs_again(
    yard: Yard, options: tuple[str, ...]
) -> None:
    with yard.caller() as caller:
        receipt = app.only_once.enqueue(caller, "go")
    first = yard.worker(*options)
    yard.began(receipt)
    first.kill(heart=bool(options))
    second = yard.worker(*options)
    third = yard.worker(*options)
    job = yard.over(receipt)
    assert (job.state, job.outcome, job.held) == ("failed", Outcome.LOST, True)
    # Both survivors work on, and neither takes it up again.
    with yard.caller() as caller:
        others = [app.quick.enqueue(caller, n) for n in range(5)]
    yard.all_over(others)
    assert len(yard.effects(receipt)) == 1
    assert (second.stop(), third.stop()) == (0, 0)
    eventually(lambda: yard.logged(IMPORTANT) > 0, "the loss is logged")
    assert yard.logged(IMPORTANT) == 1
    [line] = [line for worker in yard.workers for line in worker.told(IMPORTANT)]
    assert (line["level"], line["attempts"], line["job"]) == ("error", "1/1", str(receipt.id))


@pytest.mark.acceptance("A14")
@pytest.mark.case("C07")
def test_c07_a_restarted_worker_of_the_same_name_is_another_worker(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    first = yard.worker(name="same")
    yard.began(receipt)
    first.kill(heart=True)
    second = yard.worker(*SOON_DEAD, name="same")
    assert second.id != first.id
    # It does not adopt the run: the lease stays with the dead one until that is declared dead.
    [(holder,)] = yard.sql("select worker from leasebook.jobs")
    assert holder in (first.id, None)
    yard.began(receipt, 2)
    yard.open("go")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    leases = [each for each in yard.events(receipt) if isinstance(each, Leased)]
    assert [each.worker for each in leases] == [first.id, second.id]


@pytest.mark.acceptance("A14")
def test_a14_a_dead_worker_is_noticed_by_another_long_before_its_lease_ends(yard: Yard) -> None:
    with yard.caller() as caller:
        receipts = [app.gated.enqueue(caller, "go") for _ in range(3)]
    first = yard.worker()
    for receipt in receipts:
        yard.began(receipt)
    second = yard.worker(*SOON_DEAD)
    first.kill(heart=True)
    # Interrupted jobs start one at a time while they are young, so let each be over at once.
    yard.open("go")
    assert yard.all_over(receipts) == {"done": 3}
    [(_, dead, detail)] = yard.audit("worker_died")
    assert (dead, detail["noticed_by"]) == (first.id, second.id)
    for receipt in receipts:
        leased, expired = yard.events(receipt)[1:3]
        assert isinstance(leased, Leased)
        assert isinstance(expired, LeaseExpired)
        assert expired.cause is ExpiryCause.WORKER_LOST
        assert leased.lease_until - expired.at > timedelta(minutes=9)


@pytest.mark.case("C02")
def test_c02_what_a_dead_worker_held_takes_no_place_of_another(yard: Yard) -> None:
    """The one limit there is counts runs of a worker, ``--concurrency``, and only living ones."""
    with yard.caller() as caller:
        held = app.gated.enqueue(caller, "go")
    first = yard.worker("--concurrency", "1")
    yard.began(held)
    first.kill(heart=True)
    with yard.caller() as caller:
        others = [app.quick.enqueue(caller, n) for n in range(5)]
    yard.worker("--concurrency", "1", *SOON_DEAD)
    yard.open("go")
    assert yard.all_over([held, *others]) == {"done": 6}
    assert [len(yard.effects(each)) for each in (held, *others)] == [2, 1, 1, 1, 1, 1]


def test_a_killed_heartbeat_child_is_replaced_and_nothing_is_lost(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    worker = yard.worker()
    yard.worker()
    yard.began(receipt)
    old = worker.heart
    os.kill(old, signal.SIGKILL)
    worker.tells("heartbeat child died")
    eventually(lambda: worker.heart != old, "another child")
    beats = "select beats from leasebook.workers where id = %s"
    [(before,)] = yard.sql(beats, worker.id)
    eventually(lambda: yard.sql(beats, worker.id)[0][0] > before + 1, "it beats again")
    yard.open("go")
    assert yard.over(receipt).starts == 1
    assert yard.audit("worker_died") == []
    assert len(worker.told(STARTED)) == 1


def test_a_heartbeat_child_outlives_signals_to_the_whole_group(yard: Yard) -> None:
    """A service manager signals every process of a service; the worker beats on while it drains."""
    worker = yard.worker()
    beats = "select beats from leasebook.workers"
    eventually(lambda: yard.sql(beats)[0][0] > 0, "it has begun to beat")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(worker.heart, number)
    [(before,)] = yard.sql(beats)
    eventually(lambda: yard.sql(beats)[0][0] > before + 1, "it beats on")
    assert len(worker.told(HEART_STARTED)) == 1
    assert worker.stop() == 0


def test_a_process_that_a_handler_forked_does_not_hide_the_death(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.forks.enqueue(caller, "go")
    first = yard.worker()
    [effect] = yard.began(receipt)
    forked = int(effect.note)
    heart = first.heart
    try:
        first.kill()
        eventually(lambda: not running(heart), "the heartbeat child has ended")
        assert running(forked)
        [(_, dead, _)] = yard.audit("worker_died")
        assert dead == first.id
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_worker_that_was_buried_alive_starts_anew(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    worker = yard.worker("--concurrency", "1")
    yard.began(receipt)
    buried = worker.id
    yard.sql("update leasebook.workers set died_at = clock_timestamp()")
    worker.tells("declared dead by another worker")
    eventually(lambda: worker.id != buried, "it has a new id")
    with yard.caller() as caller:
        other = app.quick.enqueue(caller, 1)
    assert yard.over(other).state == "done"


def over(yard: Yard, worker: WorkerProcess, receipt: Receipt) -> bool:
    """Whether the worker has died or the job has been given up."""
    return worker.process.poll() is not None or yard.job(receipt).state == "failed"


@pytest.mark.case("C09")
def test_c09_a_job_that_kills_its_worker_is_started_retries_plus_one_times(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.deadly.enqueue(caller)
    starts = 0
    while yard.job(receipt).state != "failed":
        worker = yard.worker()
        starts += 1
        eventually(partial(over, yard, worker, receipt), "the worker dies, or the job is given up")
        assert starts < 10
    job = yard.job(receipt)
    assert (job.outcome, job.starts, job.attempts) == (Outcome.LOST, 3, 3)
    assert len(yard.effects(receipt)) == 3
    last = yard.events(receipt)[-1]
    assert isinstance(last, Failed)
    assert last.held
