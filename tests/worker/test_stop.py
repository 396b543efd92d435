"""A worker stops when it is told, or when nothing is left, and leaves nothing behind."""

from __future__ import annotations

import signal

import pytest

from leasebook.domain.events import Released
from leasebook.domain.values import ReleaseReason
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_handlers_may_finish_and_nothing_new_begins(
    yard: Yard, number: signal.Signals
) -> None:
    with yard.caller() as caller:
        running = [app.gated.enqueue(caller, "go"), app.gated_thread.enqueue(caller, "go")]
        waiting = app.gated.enqueue(caller, "go")
    worker = yard.worker("--concurrency", "2")
    for each in running:
        yard.began(each)
    worker.signal(number)
    worker.tells("worker stopping", runs=2)
    with yard.caller() as caller:
        later = app.quick.enqueue(caller, 1)
    yard.open("go")
    assert worker.ended() == 0
    assert yard.all_over(running) == {"done": 2}
    assert yard.kinds(waiting) == yard.kinds(later) == ["enqueued"]
    assert yard.sql("select count(*) from leasebook.workers") == [(0,)]
    assert len(yard.audit("worker_stopped")) == 1


@pytest.mark.parametrize("how", ["the grace ends", "a second signal"])
def test_what_does_not_finish_is_given_back_and_spends_nothing(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        running = [app.gated.enqueue(caller, "go"), app.gated_thread.enqueue(caller, "go")]
    worker = yard.worker("--grace", "0.3" if how == "the grace ends" else "60")
    for each in running:
        yard.began(each)
    worker.signal(signal.SIGTERM)
    worker.tells("worker stopping")
    if how == "a second signal":
        worker.signal(signal.SIGTERM)
    else:
        worker.tells("stop interrupts handlers")
        eventually(lambda: yard.kinds(running[0])[-1] == "released", "the coroutine is given back")
        worker.signal(signal.SIGTERM)
    assert worker.ended() == 0
    for each in running:
        released = yard.events(each)[-1]
        assert isinstance(released, Released)
        assert (released.reason, released.due_at) == (ReleaseReason.SHUTDOWN, released.at)
        assert yard.job(each).attempts == 0
    # They are anybody's at once.
    yard.open("go")
    yard.worker()
    assert yard.all_over(running) == {"done": 2}


def test_a_thread_that_never_ends_does_not_keep_the_process(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.hides_in_a_thread.enqueue(caller, "never")
    worker = yard.worker("--grace", "0")
    yard.began(receipt)
    assert worker.stop() == 0
    assert yard.kinds(receipt)[-1] == "released"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--heartbeat", "10", "--dead-after", "20"), "three times"),
        (("--poll", "0"), "--poll"),
        (("--poll", "nan"), "--poll"),
        (("--concurrency", "0"), "--concurrency"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    yard: Yard, options: tuple[str, ...], said: str
) -> None:
    worker = yard.start(*options)
    yard.may_alarm = True
    assert worker.ended() == 2
    eventually(lambda: said in "".join(worker.raw), "it says what is wrong")


def test_a_third_signal_ends_a_worker_whose_loop_is_blocked(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.blocks_the_loop_long.enqueue(caller, "go")
    worker = yard.worker()
    yard.began(receipt)
    for _ in range(3):
        worker.signal(signal.SIGTERM)
        eventually(lambda: not pending(worker.pid), "the signal has arrived")
    assert worker.ended() == 130
    # Its heartbeat child ends the lease, as after any death.
    eventually(lambda: yard.kinds(receipt)[-1] == "lease_expired", "the lease is ended")


def pending(pid: int) -> bool:
    """Whether a process has a signal that it has not seen."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
            return any(
                line.startswith(("SigPnd", "ShdPnd")) and int(line.split()[1], 16) for line in lines
            )
    except OSError:
        return False


def test_a_drain_works_off_what_is_due_and_ends(yard: Yard) -> None:
    with yard.caller() as caller:
        due = [app.quick.enqueue(caller, n) for n in range(30)]
        failing = app.failing.enqueue(caller, "no")
        later = app.quick.enqueue(caller, 99, delay=3600)
    worker = yard.start("--drain")
    assert worker.ended() == 0
    assert yard.all_over(due) == {"done": 30}
    assert yard.job(failing).attempts >= 1
    assert yard.kinds(later) == ["enqueued"]


def test_a_drain_of_nothing_ends(yard: Yard) -> None:
    assert yard.start("--drain").ended() == 0
