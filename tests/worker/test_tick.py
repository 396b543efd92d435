"""Ticks that meet lost answers, refused data, late reports and their own burial."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from leasebook.domain import change
from leasebook.domain.commands import ExpireLease, Renew, TakeLease
from leasebook.domain.errors import StaleLease
from leasebook.domain.events import Completed, Failed, Released
from leasebook.domain.job import Job
from leasebook.domain.values import ExpiryCause, Outcome, ReleaseReason
from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.ports import DataRefused, Store, StoreUnavailable
from leasebook.infra.worker.answers import Answer, Broke, GaveBack, RanOver, Report, Succeeded
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.settle import Refusal, settle
from tests.conformance.making import interrupt, items, now, tell

from .ticking import (
    SETTINGS,
    W1,
    W2,
    breaking,
    due,
    kinds,
    leased,
    lost_answer,
    report,
    stream,
    tick,
    ticker,
)

DONE = Succeeded('"done"')


def answer_of(refusal: Refusal) -> Answer:
    assert isinstance(refusal.entry, Report)
    return refusal.entry.answer


def overtake(store: Store, job: Job, by: str = W2) -> Job:
    """The lease of a running job ends, and another worker has it by now."""
    assert job.lease is not None
    lost = tell(store, job, ExpireLease(now(store), job.lease.token, ExpiryCause.WORKER_LOST))
    return tell(store, lost, TakeLease(now(store), by))


def test_a_run_whose_end_was_recorded_without_our_knowing_is_applied_once(
    database: MemoryDatabase,
) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    due(store, 2)
    first, second = leased(one)
    lost_answer(database)
    reports = [report(first, DONE), report(second, Broke("ValueError: no", 60))]
    with pytest.raises(StoreUnavailable):
        tick(one, *reports)
    assert not one.in_doubt, "it asked for no leases"
    ticked = tick(one, *reports)
    assert {each.after.id for each in ticked.settled.changes} == {first.id, second.id}
    assert ticked.settled.refused == []
    assert kinds(store, first) == ["enqueued", "leased", "completed"]
    assert kinds(store, second) == ["enqueued", "leased", "retry_scheduled"]
    assert [each.evidence.kind for each in database.audit()] == ["worker_started"]


def test_leases_that_nobody_was_told_of_are_given_back(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    jobs = due(store, 3)
    [running] = leased(one, 1)
    lost_answer(database)
    with pytest.raises(StoreUnavailable):
        tick(one, running=[running], slots=5)
    ticked = tick(one, running=[running])
    assert ticked.lost == ()
    for job in jobs:
        if job.id == running.id:
            assert kinds(store, job) == ["enqueued", "leased"]
        else:
            released = stream(store, job.id)[-1].event
            assert isinstance(released, Released)
            assert released.reason is ReleaseReason.NEVER_STARTED
    again = leased(one)
    assert [(job.starts, job.attempts) for job in again] == [(2, 0), (2, 0)]


def test_a_running_job_that_another_worker_has_by_now_is_told_of(store: Store) -> None:
    one = ticker(store)
    due(store, 2)
    first, second = leased(one)
    overtake(store, first)
    assert tick(one, running=[first, second]).lost == ()
    assert tick(one, running=[first, second], reconcile=True).lost == (first,)


@pytest.mark.parametrize("place", range(8))
def test_one_report_that_the_store_refuses_costs_the_others_nothing(
    store: Store, place: int
) -> None:
    one = ticker(store)
    due(store, 8)
    jobs = leased(one)
    reports = [report(job, DONE) for job in jobs]
    reports[place] = report(jobs[place], Succeeded('"nul \0"'))
    ticked = tick(one, *reports)
    assert len(ticked.settled.changes) == 8
    for number, job in enumerate(jobs):
        last = stream(store, job.id)[-1].event
        if number != place:
            assert isinstance(last, Completed)
        else:
            assert isinstance(last, Failed)
            assert last.outcome is Outcome.REJECTED
            assert last.error is not None
            assert last.error.startswith("the database refused the end of this run")
    assert not one.in_doubt


def test_a_run_that_cannot_be_recorded_at_all_holds_nothing_up(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    due(store, 1)
    [job] = leased(one)
    database.on_step(breaking("append", DataRefused("no"), 10))
    ticked = tick(one, report(job, DONE))
    assert [each.job for each in ticked.settled.unrecorded] == [job]
    assert ticked.settled.again == []


def test_an_inbox_that_the_store_refuses_does_not_keep_jobs_from_starting(
    database: MemoryDatabase,
) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    jobs = due(store, 2)
    with database.begin() as caller:
        caller.accept(items([1, 2]))
    database.on_step(breaking("collectable", DataRefused("a bad item")))
    ticked = tick(one, slots=5, collect=True)
    assert ticked.inbox_refused == "a bad item"
    assert {job.id for job in ticked.leased} == {job.id for job in jobs}
    assert database.items() == 2
    assert tick(one, collect=True).collected == 2


@pytest.mark.acceptance("Q08")
@pytest.mark.parametrize(
    "answer", [DONE, Broke("ValueError: no", 1), GaveBack(ReleaseReason.SHUTDOWN)]
)
def test_q08_a_stale_owner_can_neither_complete_nor_fail_nor_release(
    store: Store, answer: Answer
) -> None:
    one = ticker(store)
    due(store, 1)
    [job] = leased(one)
    current = overtake(store, job)
    before = stream(store, job.id)
    with store.transaction() as tx:
        settled = settle(tx, [report(job, answer)])
    [refusal] = settled.refused
    assert job.lease is not None
    assert current.lease is not None
    assert (refusal.error.token, refusal.error.current) == (job.lease.token, current.lease.token)
    assert not settled.changes
    assert not settled.again
    assert stream(store, job.id) == before


@pytest.mark.acceptance("Q08")
def test_q08_a_stale_owner_can_neither_renew_nor_expire(store: Store) -> None:
    one = ticker(store)
    due(store, 1, lease=1)
    [job] = leased(one)
    current = overtake(store, job)
    assert job.lease is not None
    for command in (
        Renew(now(store), job.lease.token, now(store) + timedelta(hours=1)),
        ExpireLease(now(store), job.lease.token, ExpiryCause.WORKER_LOST),
    ):
        with pytest.raises(StaleLease):
            change(current, command)
    # And its heartbeat, which asks the store what it holds, does not see the job at all.
    before = stream(store, job.id)
    assert Heart(store, W1, SETTINGS).renew() == 0
    assert Heart(store, W1, SETTINGS).bury(W1) == []
    assert stream(store, job.id) == before


def test_a_run_that_timed_out_where_somebody_noticed_it_first_is_no_late_result(
    store: Store,
) -> None:
    one = ticker(store)
    due(store, 1)
    [job] = leased(one)
    overtake(store, job)
    settled = tick(one, report(job, RanOver())).settled
    assert (settled.changes, settled.refused, settled.again) == ([], [], [])


@pytest.mark.parametrize("late_first", [True, False])
def test_a_late_report_and_that_of_the_next_run_may_come_together(
    store: Store, late_first: bool
) -> None:
    one = ticker(store)
    due(store, 1)
    [first] = leased(one)
    second = overtake(store, first, W1)
    reports = [report(first, Succeeded('"late"')), report(second, Succeeded('"right"'))]
    settled = tick(one, *(reports if late_first else reversed(reports))).settled
    assert [answer_of(each) for each in settled.refused] == [Succeeded('"late"')]
    last = stream(store, first.id)[-1].event
    assert isinstance(last, Completed)
    assert last.result == '"right"'


@pytest.mark.parametrize("retries", [0, 3])
def test_a_time_out_and_the_answer_that_came_just_after_it_may_come_together(
    store: Store, retries: int
) -> None:
    one = ticker(store)
    due(store, 1, retries=retries)
    [job] = leased(one)
    settled = tick(one, report(job, RanOver()), report(job, DONE)).settled
    assert [answer_of(each) for each in settled.refused] == [DONE]
    end = "failed" if retries == 0 else "lease_expired"
    assert kinds(store, job) == ["enqueued", "leased", end]


def test_a_renewal_in_between_costs_a_run_nothing(store: Store) -> None:
    one = ticker(store)
    due(store, 1, lease=1)
    [job] = leased(one)
    assert job.lease is not None
    tell(store, job, Renew(now(store), job.lease.token, now(store) + timedelta(seconds=30)))
    assert len(tick(one, report(job, DONE)).settled.changes) == 1
    assert kinds(store, job) == ["enqueued", "leased", "heartbeat", "completed"]


def test_a_buried_worker_loses_what_it_runs_and_leases_nothing(store: Store) -> None:
    one = ticker(store)
    due(store, 3)
    [running] = leased(one, 1)
    assert len(Heart(store, W2, SETTINGS).bury(W1)) == 1
    ticked = tick(one, running=[running], slots=5)
    assert ticked.buried
    assert (ticked.lost, ticked.leased) == ((running,), ())
    # A full worker, which asks for nothing, finds out when it reconciles.
    assert tick(one, running=[running], reconcile=True).buried
    one.worker = "w1 again"
    ticker(store, one.worker)
    assert len(tick(one, slots=5).leased) == 3


def test_what_a_dead_worker_did_not_see_its_next_life_sees(store: Store) -> None:
    """The dead one is given nothing; that says nothing of what is due."""
    one = ticker(store)
    one.crowded = True
    due(store, 3)
    assert not Heart(store, W2, SETTINGS).bury(W1)
    assert tick(one, slots=5).buried
    one.worker = "w1 again"
    ticker(store, one.worker)
    assert len(tick(one, slots=5).leased) == 3


def test_a_tick_asks_once_whether_its_worker_lives(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, asked = ticker(store), list[str]()
    with store.transaction() as transaction:
        kind: Any = type(transaction)
    is_alive: Any = kind.is_alive

    def counted(self: Any, worker: str) -> bool:
        asked.append(worker)
        return bool(is_alive(self, worker))

    monkeypatch.setattr(kind, "is_alive", counted)
    tick(one, slots=5)
    tick(one, slots=5, reconcile=True)
    assert len(asked) == 2
    due(store, 1)
    assert tick(one, slots=5).leased
    assert len(asked) == 2, "who is given something lives"


def test_suspects_start_one_at_a_time_beside_innocents(store: Store) -> None:
    one = ticker(store)
    jobs = due(store, 6)
    suspects = [interrupt(store, job).id for job in jobs[:3]]
    took = leased(one)
    assert sum(job.id in suspects for job in took) == 1
    assert len(took) == 4
    assert tick(one, running=took, slots=6).leased == ()
    [young] = [job for job in took if job.id in suspects]
    rest = [job for job in took if job is not young]
    ticked = tick(one, report(young, DONE), running=rest, slots=7)
    assert [job.id in suspects for job in ticked.leased] == [True]


def test_a_death_is_finished_although_the_store_goes_away_in_the_middle(
    database: MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasebook.infra.worker.heart.BURIAL_BATCH", 2)
    store = MemoryStore.on(database)
    jobs = due(store, 5)
    assert len(leased(ticker(store))) == 5
    ticker(store, W2)
    heart = Heart(store, W2, SETTINGS)
    commits = 0

    def seam(name: str) -> None:
        nonlocal commits
        commits += name == "commit"
        if name == "commit" and commits == 2:
            raise StoreUnavailable("gone")

    database.on_step(seam)
    with pytest.raises(StoreUnavailable):
        heart.bury(W1)
    # The next beat goes on, although the dead one is no longer among the living.
    _, changes = heart.pulse(0.0)
    assert len(changes) == 3
    assert [kinds(store, job)[-1] for job in jobs] == ["lease_expired"] * 5
    assert heart.pulse(1.0)[1] == ()
    died = [each for each in database.audit() if each.evidence.kind == "worker_died"]
    assert len(died) == 1


def test_a_heart_renews_half_way_and_never_past_the_time_out() -> None:
    clock = [datetime(2030, 1, 1, tzinfo=UTC)]
    store = MemoryStore(lambda: clock[0])
    due(store, 1, lease=10, timeout=12)
    [job] = leased(ticker(store))
    heart = Heart(store, W1, SETTINGS)

    def renewed(after: float) -> int:
        clock[0] = job.at + timedelta(seconds=after)
        return heart.renew()

    assert [renewed(4.9), renewed(5), renewed(6)] == [0, 1, 0]
    with store.transaction() as tx:
        found = tx.load([job.id])[job.id]
    assert found.due_at == found.deadline == job.at + timedelta(seconds=12)
    assert [renewed(7), renewed(11)] == [0, 0]


def test_a_heart_whose_worker_holds_nothing_asks_short_questions(
    database: MemoryDatabase,
) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    heart = Heart(store, W1, SETTINGS)
    questions: list[str] = []

    def asked(second: float) -> list[str]:
        questions.clear()
        heart.pulse(second)
        return [each for each in questions if each not in ("begin", "commit", "committed")]

    database.on_step(questions.append)
    assert asked(0.0) == ["beat", "is_idle", "beats"]
    due(store, 1)
    [job] = leased(one)
    assert asked(10.0) == ["beat", "is_idle", "leased_by", "beats"]
    tick(one, report(job, DONE))
    # The worker was not heard of since: whether it overran is told by the time of the store.
    assert asked(20.0) == ["beat", "leased_by", "beats"]
    heart.signs_of_life()
    assert asked(30.0) == ["beat", "is_idle", "beats"]


def test_reports_of_many_jobs_are_settled_in_one_round(store: Store) -> None:
    one = ticker(store)
    due(store, 10)
    jobs = leased(one)
    reports: list[Report] = [report(job, DONE) for job in reversed(jobs)]
    settled = tick(one, *reports).settled
    assert [each.after.id for each in settled.changes] == [job.id for job in jobs]
