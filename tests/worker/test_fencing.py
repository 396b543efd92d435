"""A worker that was away too long is fenced: another run owns the job."""

from __future__ import annotations

import signal

import pytest

from leasebook.domain.events import Completed, Leased
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app


@pytest.mark.fault
@pytest.mark.acceptance("Q08")
@pytest.mark.case("C04")
@pytest.mark.parametrize("handler", ["slow_start", "slow_start_thread"])
def test_c04_a_frozen_worker_thaws_and_its_late_result_is_refused(yard: Yard, handler: str) -> None:
    # Else it may find out that its lease is lost before its handler has gone on.
    frozen = yard.worker("--no-death-detection", "--heartbeat", "30")
    yard.beating(frozen)
    with yard.caller() as caller:
        receipt = app.book.enqueue(caller, handler, {})
    yard.began(receipt)
    other = yard.worker("--no-death-detection")
    yard.beating(other)
    frozen.signal(signal.SIGSTOP, heart=True)
    yard.began(receipt, 2)
    # The frozen handler goes on first, while the new run is still at work.
    yard.open("1")
    frozen.signal(signal.SIGCONT, heart=True)
    refused = frozen.tells("late result refused")
    first, second = (each for each in yard.events(receipt) if isinstance(each, Leased))
    token = yard.events(receipt).index(first) + 1
    assert (refused["job"], refused["lease"]) == (str(receipt.id), token)
    [(job_id, worker, detail)] = yard.audit("late_write_refused")
    assert (job_id, worker) == (receipt.id, frozen.id)
    assert (detail["answer"], detail["lease"]) == ("Succeeded", token)
    assert yard.job(receipt).state == "leased"
    yard.open("2")
    job = yard.over(receipt)
    completed = yard.events(receipt)[-1]
    assert isinstance(completed, Completed)
    assert completed.result == '"start 2"'
    assert completed.lease == yard.events(receipt).index(second) + 1
    assert (second.worker, job.starts) == (other.id, 2)
    # The thawed worker is of use again.
    with yard.caller() as caller:
        more = [app.quick.enqueue(caller, n) for n in range(4)]
    yard.all_over(more)
    assert (frozen.stop(), other.stop()) == (0, 0)


@pytest.mark.fault
@pytest.mark.acceptance("Q08")
def test_a_run_whose_lease_is_lost_is_told_so(yard: Yard) -> None:
    """Nobody froze: an operator's mistake, or a clock, took the lease while the handler runs."""
    with yard.caller() as caller:
        receipt = app.watches_its_lease.enqueue(caller)
    worker = yard.worker("--concurrency", "1")
    yard.began(receipt)
    yard.sql("update leasebook.workers set died_at = clock_timestamp()")
    worker.tells("leases lost")
    eventually(lambda: [each.note for each in yard.effects(receipt)] == ["", "lost"], "it is told")
