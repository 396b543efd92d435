"""Handlers in processes: killable, and one that dies takes nothing with it but its own run."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from leasebook import Book
from leasebook.domain.errors import InvalidValue
from leasebook.domain.events import Completed, LeaseExpired, Released, RetryScheduled
from leasebook.domain.values import ExpiryCause, ReleaseReason
from leasebook.infra.app.errors import HandlerRefused
from leasebook.infra.caller_ports import Receipt
from tests.support.workers import eventually, running
from tests.support.yard import Yard
from tests.worker import crunch

CRUNCH = "tests.worker.crunch:book"


def result(yard: Yard, receipt: Receipt) -> str:
    completed = yard.events(receipt)[-1]
    assert isinstance(completed, Completed)
    return completed.result


def test_arguments_and_results_cross_as_json(yard: Yard) -> None:
    with yard.caller() as caller:
        one = crunch.trace.enqueue(caller, crunch.Matrix([[1.0, 2.0], [3.0, 4.5]]))
        two = crunch.trace.enqueue(caller, crunch.Matrix([]))
        for n in range(3):
            crunch.total.enqueue(caller, n, group_key="k")
    worker = yard.worker("--concurrency", "1", app=CRUNCH)
    assert yard.all_over([one, two]) == {"done": 2}
    assert result(yard, one) == '{"trace":5.5}'
    eventually(lambda: len(yard.effects()) == 3, "the group runs too")
    pids = {each.pid for each in yard.effects()}
    assert len(pids) == 1, "a process is used again"
    assert worker.pid not in pids
    assert worker.stop() == 0
    eventually(lambda: not any(running(pid) for pid in pids), "it has ended with its worker")


@pytest.mark.fault
@pytest.mark.acceptance("A11")
@pytest.mark.parametrize("how", ["holds the lock", "swallows"])
def test_a11_a_hung_process_is_killed_at_its_time_out(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        bad = crunch.crunches.enqueue(caller, how)
        behind = crunch.quick.enqueue(caller)
    worker = yard.worker("--concurrency", "1", app=CRUNCH)
    job = yard.over(bad)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    [expired] = [each for each in yard.events(bad) if isinstance(each, LeaseExpired)]
    assert expired.cause is ExpiryCause.TIMED_OUT
    assert yard.over(behind).state == "done"
    first = yard.effects(bad)[0].pid
    eventually(lambda: not running(first), "its process is gone")
    assert worker.stop() == 0


@pytest.mark.fault
@pytest.mark.parametrize("how", ["os._exit", "segmentation fault", "out of memory"])
def test_a_process_that_dies_costs_its_own_run_only(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        innocent = crunch.waits.enqueue(caller, "go")
    worker = yard.worker(app=CRUNCH)
    yard.began(innocent)
    with yard.caller() as caller:
        bad = crunch.crunches.enqueue(caller, how)
    job = yard.over(bad)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    [failed] = [each for each in yard.events(bad) if isinstance(each, RetryScheduled)]
    said = {"os._exit": "exit code 3", "segmentation fault": "signal 11", "out of memory": "9"}
    assert "HandlerProcessDied" in failed.error
    assert said[how] in failed.error
    yard.open("go")
    assert (yard.over(innocent).starts, yard.over(innocent).attempts) == (1, 0)
    assert worker.stop() == 0


@pytest.mark.parametrize(
    ("how", "kind"),
    [("sys.exit", "retry_scheduled"), ("raises", "retry_scheduled"), ("snoozes", "released")],
)
def test_what_a_handler_raises_counts_as_in_a_thread(yard: Yard, how: str, kind: str) -> None:
    with yard.caller() as caller:
        bad = crunch.crunches.enqueue(caller, how)
    worker = yard.worker(app=CRUNCH)
    assert yard.over(bad).state == "done"
    assert yard.kinds(bad)[2] == kind
    assert len({each.pid for each in yard.effects(bad)}) == 1, "its process lives on"
    assert "secret" not in str(yard.events(bad))
    assert worker.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A13")
def test_a13_a_stop_lets_a_process_finish_then_interrupts_it(yard: Yard) -> None:
    with yard.caller() as caller:
        finishes = crunch.waits.enqueue(caller, "go")
        interrupted = crunch.waits.enqueue(caller, "never")
    worker = yard.worker("--grace", "1", app=CRUNCH)
    for each in (finishes, interrupted):
        yard.began(each)
    worker.signal(signal.SIGTERM)
    worker.tells("worker stopping")
    yard.open("go")
    assert worker.ended() == 0
    assert yard.over(finishes).state == "done"
    released = yard.events(interrupted)[-1]
    assert isinstance(released, Released)
    assert (released.reason, yard.job(interrupted).attempts) == (ReleaseReason.SHUTDOWN, 0)
    assert [each.note for each in yard.effects(interrupted)] == ["", "cleaned up"]


@pytest.mark.fault
@pytest.mark.acceptance("A13")
def test_a13_a_process_that_swallows_the_interruption_is_killed(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = crunch.crunches.enqueue(caller, "swallows")
    worker = yard.worker("--grace", "60", app=CRUNCH)
    [first] = yard.began(receipt)
    worker.signal(signal.SIGTERM)
    worker.tells("worker stopping")
    worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    assert yard.kinds(receipt)[-1] == "released"
    eventually(lambda: not running(first.pid), "its process is gone")


@pytest.mark.fault
def test_processes_end_with_a_worker_that_is_killed(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = crunch.waits.enqueue(caller, "never")
    worker = yard.worker(app=CRUNCH)
    [began] = yard.began(receipt)
    worker.kill()
    eventually(lambda: not running(began.pid), "its process is gone")
    eventually(lambda: yard.kinds(receipt)[-1] == "lease_expired", "its lease is ended")


def test_what_cannot_run_in_a_process_is_refused_when_it_is_registered() -> None:
    book: Any = Book()

    async def coroutine(n: int) -> None: ...

    def local(n: int) -> None: ...

    with pytest.raises(HandlerRefused, match="coroutine"):
        book.job(executor="process")(coroutine)
    with pytest.raises(HandlerRefused, match="inside a function"):
        book.job(executor="process")(local)
    with pytest.raises(InvalidValue, match="thread"):
        book.job(executor="fiber")(local)
