"""Writes of running handlers in ticks: in order, once, fenced, and answered after the commit."""

from __future__ import annotations

from concurrent.futures import Future
from itertools import pairwise
from typing import Any

import pytest

from leasebook.domain.commands import CompleteEffect, ExpireLease, ReleaseEffect, Renew, StartEffect
from leasebook.domain.errors import EffectRefused, EffectUncertain, LeasebookError, StaleLease
from leasebook.domain.events import Failed
from leasebook.domain.job import Job
from leasebook.domain.values import EffectKind, ExpiryCause, Outcome, ReleaseReason
from leasebook.infra.app.writing import UNSTAMPED, EffectCommand
from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.ports import Store, StoreUnavailable
from leasebook.infra.worker.answers import Broke, GaveBack, RanOver, Report, Succeeded, Write
from leasebook.infra.worker.tick import Ask, Ticked, Ticker
from tests.conformance.making import SECOND, lease, tell

from .ticking import W2, breaking, due, kinds, leased, lost_answer, stream, ticker

CALL, SNAPSHOT = EffectKind.CALL, EffectKind.SNAPSHOT
TO = "chat"


def token(job: Job) -> int:
    assert job.lease is not None
    return job.lease.token


def begin(job: Job, key: str = "post") -> Write:
    return Write(job, StartEffect(UNSTAMPED, token(job), key, TO), Future())


def done(job: Job, key: str = "post", receipt: str = "1", kind: EffectKind = CALL) -> Write:
    command: EffectCommand = CompleteEffect(UNSTAMPED, token(job), key, TO, kind, receipt)
    return Write(job, command, Future())


def undone(job: Job, key: str = "post") -> Write:
    return Write(job, ReleaseEffect(UNSTAMPED, token(job), key, "HTTP 404"), Future())


def tick(one: Ticker, *entries: Write | Report, running: Job | None = None) -> Ticked:
    return one.tick(Ask(entries, () if running is None else (running,), 0))


def answer(ticked: Ticked) -> Job | LeasebookError:
    [(_, told)] = ticked.settled.answers
    return told


def job_after(ticked: Ticked) -> Job:
    told = answer(ticked)
    assert isinstance(told, Job), told
    return told


def running(store: Store) -> tuple[Ticker, Job]:
    one = ticker(store)
    due(store, 1, lease=60.0)
    [job] = leased(one)
    return one, job


def overtaken(store: Store, job: Job) -> Job:
    """Its lease is lost, and another worker gets it."""
    with store.transaction() as tx:
        now = tx.load([job.id])[job.id]
    lost = tell(store, now, ExpireLease(now.at, token(now), ExpiryCause.WORKER_LOST))
    return lease(store, lost, W2)


@pytest.mark.acceptance("Q09")
def test_each_write_is_an_event_and_later_writes_know_of_it(store: Store) -> None:
    one, job = running(store)
    for make in (begin, undone, begin, done):
        job = job_after(tick(one, make(job), running=job))
    told = tick(one, Report(job, Succeeded())).settled
    assert not told.refused
    events = ["effect_started", "effect_released", "effect_started", "effect_completed"]
    assert kinds(store, job) == ["enqueued", "leased", *events, "completed"]


@pytest.mark.acceptance("Q09")
@pytest.mark.parametrize("heartbeat", [False, True])
def test_a_write_whose_answer_was_lost_is_recognised(
    database: MemoryDatabase, heartbeat: bool
) -> None:
    """The same events may legitimately come again: a lost answer is no reason to write them."""
    store = MemoryStore.on(database)
    one, job = running(store)
    for make in (begin, undone, begin, done):
        write = make(job)
        lost_answer(database)
        with pytest.raises(StoreUnavailable):
            tick(one, write, running=job)
        database.on_step(lambda name: None)
        now = job
        if heartbeat:
            with store.transaction() as tx:
                now = tx.load([job.id])[job.id]
            tell(store, now, Renew(now.at, token(now), now.due_at + 30 * SECOND))
        job = job_after(tick(one, write, running=job))
    events = [kind for kind in kinds(store, job) if kind.startswith("effect")]
    started, completed = "effect_started", "effect_completed"
    assert events == [started, "effect_released", started, completed]


@pytest.mark.acceptance("Q09")
@pytest.mark.parametrize(
    "end", [Succeeded('"all"'), Broke("boom", 0.0), GaveBack(ReleaseReason.SNOOZE)]
)
def test_all_of_a_lost_tick_comes_again_and_is_recognised(
    database: MemoryDatabase, end: Any
) -> None:
    store = MemoryStore.on(database)
    one, job = running(store)
    job = job_after(tick(one, begin(job), running=job))
    batch = (done(job), Report(job, end))
    lost_answer(database)
    with pytest.raises(StoreUnavailable):
        tick(one, *batch)
    database.on_step(lambda name: None)
    before = kinds(store, job)
    ticked = tick(one, *batch)
    assert ticked.settled.refused == []
    assert isinstance(answer(ticked), Job)
    assert kinds(store, job) == before


@pytest.mark.acceptance("Q05")
def test_nobody_is_answered_before_the_commit(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    one, job = running(store)
    write = begin(job)
    database.on_step(breaking("commit", StoreUnavailable("cut")))
    with pytest.raises(StoreUnavailable):
        tick(one, write, running=job)
    assert not write.reply.done()
    assert job_after(tick(one, write, running=job)).uncertain is not None
    assert kinds(store, job) == ["enqueued", "leased", "effect_started"]


def test_what_a_run_has_written_comes_before_its_end(store: Store) -> None:
    """Whoever was first to tell."""
    one, job = running(store)
    begun = job_after(tick(one, begin(job), running=job))
    ticked = tick(one, Report(begun, Succeeded()), done(begun))
    assert isinstance(answer(ticked), Job)
    assert kinds(store, job)[-2:] == ["effect_completed", "completed"]


@pytest.mark.acceptance("Q11")
@pytest.mark.parametrize("end", [RanOver(), GaveBack(ReleaseReason.SHUTDOWN), Succeeded()])
def test_nothing_begins_in_a_run_that_is_over(store: Store, end: Any) -> None:
    """It waited through an outage for its begin, and was given up meanwhile: nothing happened."""
    one, job = running(store)
    ticked = tick(one, begin(job), Report(job, end))
    assert isinstance(answer(ticked), StaleLease)
    assert "effect_started" not in kinds(store, job)
    assert "failed" not in kinds(store, job)


def test_a_begin_that_is_on_record_makes_the_end_uncertain(database: MemoryDatabase) -> None:
    """Whether its answer was heard or not: the call may have been made."""
    store = MemoryStore.on(database)
    one, job = running(store)
    write = begin(job)
    lost_answer(database)
    with pytest.raises(StoreUnavailable):
        tick(one, write, running=job)
    database.on_step(lambda name: None)
    tick(one, write, Report(job, RanOver()))
    last = stream(store, job.id)[-1].event
    assert isinstance(last, Failed)
    assert (last.outcome, last.held) == (Outcome.UNCERTAIN, True)


@pytest.mark.acceptance("Q08")
@pytest.mark.parametrize("make", [begin, done, undone])
def test_a_stale_write_is_refused_and_kept(database: MemoryDatabase, make: Any) -> None:
    store = MemoryStore.on(database)
    one, job = running(store)
    overtaken(store, job)
    write = make(job)
    ticked = tick(one, write)
    assert isinstance(answer(ticked), StaleLease)
    [line] = [each.evidence for each in database.audit() if "refused" in each.evidence.kind]
    assert (line.kind, line.job_id) == ("late_write_refused", job.id)
    assert type(write.command).__name__ in line.detail
    assert ('"receipt":1' in line.detail) == (make is done)
    assert not any(kind.startswith("effect") for kind in kinds(store, job))


@pytest.mark.acceptance("Q08")
def test_a_done_effect_is_told_to_the_owner_only(store: Store) -> None:
    one, job = running(store)
    job = job_after(tick(one, begin(job), running=job))
    job = job_after(tick(one, done(job), running=job))
    again = job_after(tick(one, begin(job), running=job))
    assert [each.receipt for each in again.effects] == ["1"]
    assert again.version == job.version
    overtaken(store, job)
    assert isinstance(answer(tick(one, begin(job))), StaleLease)


@pytest.mark.acceptance("Q12")
def test_what_the_domain_refuses_reaches_the_handler(store: Store) -> None:
    one, job = running(store)
    assert isinstance(answer(tick(one, done(job), running=job)), EffectRefused)
    job = job_after(tick(one, begin(job), running=job))
    assert isinstance(answer(tick(one, begin(job), running=job)), EffectUncertain)
    assert isinstance(answer(tick(one, done(job, kind=SNAPSHOT), running=job)), EffectRefused)
    assert kinds(store, job) == ["enqueued", "leased", "effect_started"]


def test_many_effects_of_one_run_come_at_once(store: Store) -> None:
    one, job = running(store)
    writes = [begin(job, f"post {n}") for n in range(12)]
    pending: list[Any] = list(writes)
    told: list[Job] = []
    while pending:
        settled = tick(one, *pending, running=job).settled
        told += [each for _, each in settled.answers if isinstance(each, Job)]
        pending = settled.again
    assert [len(each.effects) for each in told] == list(range(1, 13))
    assert all(one.version < two.version for one, two in pairwise(told))


def test_a_write_that_the_store_refuses_fails_alone(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    one = ticker(store)
    due(store, 3)
    good, bad, other = leased(one)
    unstorable = done(bad, receipt='"\\0"', kind=SNAPSHOT)
    ticked = tick(one, begin(good), unstorable, Report(other, Succeeded()))
    answers = {write.job.id: told for write, told in ticked.settled.answers}
    assert isinstance(answers[good.id], Job)
    assert isinstance(answers[bad.id], EffectRefused)
    assert kinds(store, other)[-1] == "completed"
