"""A handler that does not end loses its lease, its slot and its thread, and the worker lives on."""

from __future__ import annotations

import pytest

from leasebook.domain.events import Failed, LeaseExpired
from leasebook.domain.values import ExpiryCause, Outcome
from tests.support.yard import Yard
from tests.worker import app


@pytest.mark.parametrize("how", ["polite", "late", "stubborn"])
def test_a_hung_coroutine_spends_its_attempts_and_frees_its_slot(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        hung = app.hung.enqueue(caller, how)
        behind = app.quick.enqueue(caller, 1)
    worker = yard.worker("--concurrency", "1", "--grace", "1")
    job = yard.over(hung)
    assert (job.outcome, job.starts, job.attempts) == (Outcome.LOST, 2, 2)
    expired = [each for each in yard.events(hung) if isinstance(each, LeaseExpired)]
    assert [each.cause for each in expired] == [ExpiryCause.TIMED_OUT]
    assert yard.over(behind).state == "done"
    assert len(yard.audit("late_write_refused")) == (2 if how == "late" else 0)
    # A coroutine that swallows its cancellation does not keep the worker from ending.
    assert worker.stop() == 0


def test_a_hung_thread_is_left_behind_and_its_late_result_refused(yard: Yard) -> None:
    with yard.caller() as caller:
        hung = app.hung_thread.enqueue(caller, "go")
        behind = app.gated_thread.enqueue(caller, "open")
    yard.open("open")
    worker = yard.worker("--concurrency", "1")
    job = yard.over(hung)
    assert (job.outcome, job.starts) == (Outcome.LOST, 2)
    assert yard.over(behind).state == "done"
    yard.open("go")
    worker.tells("late result refused", job=str(hung.id))
    last = yard.events(hung)[-1]
    assert isinstance(last, Failed)
    assert worker.stop() == 0


def test_a_hung_thread_does_not_keep_the_worker_from_ending(yard: Yard) -> None:
    with yard.caller() as caller:
        hung = app.hung_thread.enqueue(caller, "never")
    worker = yard.worker()
    yard.over(hung)
    assert worker.stop() == 0


def test_a_coroutine_that_blocks_the_loop_takes_no_innocent_with_it(yard: Yard) -> None:
    """While the loop stands still nothing is leased, since it could not begin."""
    with yard.caller() as caller:
        blocker = app.blocks_the_loop.enqueue(caller, "go")
    worker = yard.worker("--concurrency", "5")
    yard.began(blocker)
    with yard.caller() as caller:
        innocents = [app.quick.enqueue(caller, n) for n in range(10)]
    job = yard.over(blocker)
    assert (job.outcome, job.starts) == (Outcome.LOST, 1)
    yard.open("go")
    assert yard.all_over(innocents) == {"done": 10}
    for each in innocents:
        assert yard.job(each).attempts == 0
        assert len(yard.effects(each)) == 1
    assert worker.stop() == 0
