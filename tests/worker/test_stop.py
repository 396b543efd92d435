"""A worker stops when it is told, or when nothing is left, and leaves nothing behind."""

from __future__ import annotations

import signal

import pytest

from leasebook.domain.events import Released
from leasebook.domain.values import ReleaseReason
from leasebook.infra.cli.worker import TASK_SECONDS
from leasebook.infra.worker.settings import WorkerSettings
from tests.support.source import TOP
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app


@pytest.mark.acceptance("A13")
def test_a13_a_stop_with_the_defaults_ends_within_the_grace_that_the_docs_name() -> None:
    settings = WorkerSettings()
    assert (settings.drain, settings.cancel) == (30, 5)
    assert settings.stop_seconds == 30 + 5 + settings.settle + settings.farewell < 45
    # Every bounded wait of a stop lies inside: the call in hand, the good-bye, the last threads.
    assert settings.farewell / 2 + TASK_SECONDS <= settings.farewell
    text = (TOP / "docs" / "operating.md").read_text("utf-8")
    assert "terminationGracePeriodSeconds: 45" in text


@pytest.mark.acceptance("A13")
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


@pytest.mark.acceptance("A13", "Q06")
@pytest.mark.case("C08")
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
    # They are anybody's at once: the release is what made them due, not the end of a lease.
    assert yard.sql("select state, count(*) from leasebook.jobs group by 1") == [("queued", 2)]
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


@pytest.mark.acceptance("A13")
@pytest.mark.case("C08")
def test_c08_a_coroutine_that_cleans_up_when_it_is_cancelled_is_given_back(yard: Yard) -> None:
    """It has the time to clean up, no more is started meanwhile, and nothing is spent."""
    with yard.caller() as caller:
        polite = app.cleans_up.enqueue(caller, "clean")
        stubborn = app.hung_long.enqueue(caller)
    worker = yard.worker("--grace", "0.2")
    yard.began(polite)
    yard.began(stubborn)
    worker.signal(signal.SIGTERM)
    worker.tells("stop interrupts handlers")
    with yard.caller() as caller:
        later = app.quick.enqueue(caller, 1)
    yard.open("clean")
    assert worker.ended() == 0
    assert [each.note for each in yard.effects(polite)] == ["", "cleaned up"]
    for each in (polite, stubborn):
        released = yard.events(each)[-1]
        assert isinstance(released, Released)
        assert (released.reason, yard.job(each).attempts) == (ReleaseReason.SHUTDOWN, 0)
    assert yard.kinds(later) == ["enqueued"]


@pytest.mark.acceptance("A13")
def test_a13_a_stop_is_over_in_time_although_a_handler_blocks_the_loop(yard: Yard) -> None:
    with yard.caller() as caller:
        receipt = app.blocks_the_loop_long.enqueue(caller, "go")
    worker = yard.worker()
    yard.began(receipt)
    worker.signal(signal.SIGTERM)
    eventually(lambda: not pending(worker.pid), "the signal has arrived")
    worker.signal(signal.SIGTERM)
    assert worker.ended() == -signal.SIGALRM
    eventually(lambda: yard.kinds(receipt)[-1] == "lease_expired", "the lease is ended")


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
