"""What the simulator has found, each as a test of its own that no change of the worlds can lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from leasebook.domain import ExpiryCause, Job, change
from leasebook.domain.commands import ExpireLease, TakeLease
from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.worker.answers import Report, Succeeded
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.loop import TickLoop
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.settling import Settling
from leasebook.infra.worker.tick import Ask, Ticked, Ticker
from tests.conformance.making import enqueue, job_id, lease, new_spec, tell, worker
from tests.support.lives import START, Life


class Hands:
    """Stands in for the executor: it notes what it is told to start and to forget."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Job]] = []

    def start(self, jobs: Sequence[Job]) -> None:
        self.told += [("start", job) for job in jobs]

    def forget(self, jobs: Sequence[Job]) -> None:
        self.told += [("forget", job) for job in jobs]


@pytest.mark.acceptance("E06")
def test_a_job_that_one_tick_lost_and_leased_anew_is_running() -> None:
    """Its old lease was swept while its handler hung, and its own worker got it again.

    The new run was forgotten with the old one, and given back as never started while it ran.
    """
    old = Life().enqueue().lease(1, "w").now
    assert old.lease is not None
    lost = change(old, ExpireLease(old.at, old.lease.token, ExpiryCause.WORKER_LOST)).after
    new = change(lost, TakeLease(lost.at + timedelta(seconds=1), "w")).after
    store, hands, bell = MemoryStore(lambda: START), Hands(), Bell()
    settings, never = WorkerSettings(), _never
    ticker = Ticker(store, "w", ("default",), ("sync_page",), settings, _new_id)
    executor: Any = hands
    running, settling = {old.id: old}, Settling(ticker, bell)
    loop = TickLoop(
        store, ticker, settling, executor, bell, settings, never, never, running=running
    )
    take_over: Callable[[Ticked, float], None] = loop._take_over  # pyright: ignore[reportPrivateUsage]
    take_over(Ticked(leased=(new,), lost=(old,)), 0.0)
    assert loop.running == {new.id: new}
    assert sorted(hands.told, key=lambda each: each[0]) == [("forget", old), ("start", new)]


@pytest.mark.acceptance("E06")
def test_a_run_that_goes_on_is_nobodys_stray_while_a_late_report_of_its_job_waits() -> None:
    """The report of the run before hid the new run, which was given back while it ran."""
    database = MemoryDatabase(lambda: START + timedelta(seconds=3))
    store = MemoryStore.on(database)
    [job] = enqueue(store, new_spec())
    old = lease(store, job)
    assert old.lease is not None
    lost = ExpireLease(old.at, old.lease.token, ExpiryCause.WORKER_LOST)
    interrupted = tell(store, old, lost)
    new = lease(store, interrupted)
    ticker = Ticker(store, "w1", ("default",), ("work",), WorkerSettings(), _new_id)
    with store.transaction() as tx:
        late = [Report(old, Succeeded())]
        ask = Ask(late, (new,), 0, reconcile=True)
        assert ticker._reconcile(tx, ask, late) == ()  # pyright: ignore[reportPrivateUsage]
    [row] = database.jobs()
    assert row.state.lease == new.version


@pytest.mark.acceptance("E06")
def test_who_comes_after_a_job_is_tried_again_however_long_its_worker_was_busy() -> None:
    """Passed over while the parent's row was in other hands, it was left alone for ever."""
    clock = [START + timedelta(seconds=3)]
    database = MemoryDatabase(lambda: clock[0])
    store, other = MemoryStore.on(database), MemoryStore.on(database)
    store.enroll(worker("w1"))
    ticker = Ticker(store, "w1", ("default",), ("work",), WorkerSettings(), _new_id)
    enqueue(store, new_spec(1), new_spec(2, after=job_id(1)))
    [parent] = ticker.tick(Ask((), (), 1)).leased
    with other.transaction() as hands:
        assert not hands.locked([parent.id])
        assert ticker.tick(Ask((), (parent,), 1)).leased == ()
    clock[0] += timedelta(seconds=5)
    [follower] = ticker.tick(Ask([Report(parent, Succeeded())], (), 1)).leased
    assert follower.id == job_id(2)


def _new_id() -> UUID:
    return UUID(int=1)


def _never() -> Any:
    raise AssertionError("nobody asks for this here")
