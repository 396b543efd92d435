"""A run that gets stuck frees its job, its slot and its connection; one that is only long does not.

The job is what another run completes, the slot is what an innocent runs in, with a concurrency of
one, and connections are counted.  Nobody restarts anything.
"""

from __future__ import annotations

import signal

import pytest

from leasebook.domain.events import LeaseExpired
from leasebook.domain.values import ExpiryCause
from leasebook.infra.caller_ports import Receipt
from tests.support.workers import WorkerProcess, eventually, running
from tests.support.yard import SOON_DEAD, Yard
from tests.worker import stuck

STUCK = "tests.worker.stuck:book"
SESSIONS = """
select count(*) from pg_stat_activity
 where datname = current_database()
   and application_name in ('leasebook worker', 'leasebook heartbeat')
"""


def enqueued(yard: Yard, name: str, how: str) -> tuple[Receipt, Receipt]:
    """A job that gets stuck, and an innocent behind it."""
    with yard.caller() as caller:
        bad = stuck.book.enqueue(caller, name, {"how": how})
        behind = stuck.book.enqueue(caller, "quick")
    return bad, behind


def freed(yard: Yard, bad: Receipt, behind: Receipt, worker: WorkerProcess) -> None:
    """The job ran again and the slot served another, in the same process."""
    job = yard.over(bad)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    [expired] = [each for each in yard.events(bad) if isinstance(each, LeaseExpired)]
    assert expired.cause in (ExpiryCause.TIMED_OUT, ExpiryCause.LEASE_ENDED)
    assert yard.over(behind).state == "done"
    assert {each.pid for each in yard.effects()} == {worker.pid}


@pytest.mark.fault
@pytest.mark.acceptance("A11")
@pytest.mark.parametrize("how", ["waits for ever", "swallows its cancellation"])
def test_a11_a_hung_coroutine(yard: Yard, how: str) -> None:
    bad, behind = enqueued(yard, "hangs", how)
    worker = yard.worker("--concurrency", "1", "--grace", "0.1", app=STUCK)
    freed(yard, bad, behind, worker)
    assert worker.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A11")
@pytest.mark.parametrize("how", ["sleep", "busy"])
def test_a11_a_hung_thread(yard: Yard, how: str) -> None:
    bad, behind = enqueued(yard, "blocks_thread", how)
    worker = yard.worker("--concurrency", "1", app=STUCK)
    freed(yard, bad, behind, worker)
    assert worker.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A11")
@pytest.mark.parametrize("how", ["sleep", "swallow", "busy", "regular expression"])
def test_a11_a_coroutine_that_blocks_its_loop_is_broken_out_of_it(yard: Yard, how: str) -> None:
    bad, behind = enqueued(yard, "blocks", how)
    # (The regular expression is interrupted by the child, which is given time before it kills.)
    worker = yard.worker("--concurrency", "1", app=STUCK)
    freed(yard, bad, behind, worker)
    assert not yard.audit("late_write_refused")
    assert worker.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A11")
@pytest.mark.parametrize("name", ["blocks", "blocks_thread"])
def test_a11_foreign_code_that_holds_the_lock_costs_its_process(yard: Yard, name: str) -> None:
    """Nothing of Python reaches it: the heartbeat child ends the process, its job and sessions."""
    bad, behind = enqueued(yard, name, "holds the lock")
    stuck_worker = yard.worker("--concurrency", "1", *SOON_DEAD, app=STUCK)
    yard.began(bad)
    heart = stuck_worker.heart
    assert stuck_worker.ended() == -signal.SIGKILL
    stuck_worker.tells("worker makes no progress")
    eventually(lambda: not running(heart), "its heartbeat child has gone")
    assert yard.sql(SESSIONS) == [(0,)]
    assert len(yard.audit("worker_died")) == 1
    # What its supervisor starts, or any other worker, goes on at once.
    yard.worker("--concurrency", "1", app=STUCK)
    job = yard.over(bad)
    assert (job.state, job.starts, job.attempts) == ("done", 2, 1)
    assert yard.over(behind).state == "done"


@pytest.mark.fault
@pytest.mark.acceptance("A11")
def test_a11_a_process_that_somebody_stopped_is_overtaken_and_not_killed(yard: Yard) -> None:
    bad, _ = enqueued(yard, "blocks", "sleep")
    frozen = yard.worker("--concurrency", "1", app=STUCK)
    yard.began(bad)
    frozen.signal(signal.SIGSTOP)
    other = yard.worker("--concurrency", "1", app=STUCK)
    assert yard.over(bad).starts == 2
    frozen.signal(signal.SIGCONT)
    with yard.caller() as caller:
        more = [stuck.book.enqueue(caller, "quick") for _ in range(4)]
    assert yard.all_over(more) == {"done": 4}
    assert (frozen.stop(), other.stop()) == (0, 0)


@pytest.mark.fault
@pytest.mark.case("C05")
@pytest.mark.parametrize("how", ["awaits", "blocks the loop", "holds the lock"])
def test_c05_a_run_of_three_leases_is_renewed_and_starts_once(yard: Yard, how: str) -> None:
    worker, other = yard.worker(app=STUCK), yard.worker(app=STUCK)
    yard.beating(worker)
    yard.beating(other)
    with yard.caller() as caller:
        receipt = stuck.book.enqueue(caller, "long_blocks", {"how": how})
    yard.began(receipt)
    eventually(lambda: yard.kinds(receipt).count("heartbeat") >= 3, "it is renewed again and again")
    yard.open("go")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts) == ("done", 1, 0)
    assert len(yard.effects(receipt)) == 1
    assert (worker.stop(), other.stop()) == (0, 0)
