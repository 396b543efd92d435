"""What is kept of jobs that have ended, and what goes on without the streams of pruned ones."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leasebook.domain import change
from leasebook.domain.commands import Fail
from leasebook.domain.job import Job, Policy
from leasebook.domain.states import State
from leasebook.domain.values import OnExhausted, Outcome
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import Store
from leasebook.infra.worker.answers import Report, Succeeded
from leasebook.infra.worker.settle import settle
from leasebook.projections.status import Status, Summary

from .ground import Ground
from .making import (
    HOUR,
    SECOND,
    complete,
    enqueue,
    ids,
    job_id,
    lease,
    new_spec,
    undone,
    write,
)
from .test_order import Hand, accept, states

pytestmark = pytest.mark.acceptance("Q16")

DROPS = Policy(0, on_exhausted=OnExhausted.DROP)
HOLDS = Policy(0)
AT_ONCE = timedelta(0)


def failed(store: Store, job: Job) -> Job:
    """The job after its only run failed."""
    leased = lease(store, job)
    assert leased.lease is not None
    end = change(leased, Fail(leased.at + SECOND, leased.lease.token, "boom", 0.0, retry=True))
    return write(store, end)[0]


def ended(store: Store) -> list[Job]:
    """1 done and 2 failed with an owner, 3 done without, 4 held with one, 5 not yet over."""
    mine, four, five = {"owner": "ann"}, new_spec(4, owner="ann", policy=HOLDS), new_spec(5)
    jobs = enqueue(
        store, new_spec(1, **mine), new_spec(2, policy=DROPS, **mine), new_spec(3), four, five
    )
    done = [*write(store, complete(lease(store, jobs[0]))), failed(store, jobs[1])]
    done += write(store, complete(lease(store, jobs[2]), '{"n":1}'))
    return [*done, failed(store, jobs[3]), jobs[4]]


def kept(job: Job, status: Status, outcome: Outcome) -> Summary:
    return Summary(job.id, status, outcome, "work", job.spec.owner, job.at)


def test_how_a_job_with_an_owner_ended_is_kept_at_its_end(ground: Ground, store: Store) -> None:
    one, two, *_ = ended(store)
    assert ground.summaries() == [
        kept(one, Status.SUCCEEDED, Outcome.DONE),
        kept(two, Status.FAILED, Outcome.EXHAUSTED),
    ]


def test_what_is_rolled_back_or_missed_leaves_no_summary(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec(1, owner="ann"))
    end = complete(lease(store, job))
    with undone(store.transaction()) as transaction:
        assert not transaction.append([end])
    stale = change(end.before, Fail(end.after.at, end.after.version - 1, "boom", 5.0, retry=True))
    write(store, stale)
    with store.transaction() as transaction:
        assert transaction.append([end]) == [end]
    assert ground.summaries() == []


def test_pruning_takes_what_is_over_and_leaves_the_rest(ground: Ground, store: Store) -> None:
    one, two, three, held, waiting = ended(store)
    assert ground.prune(HOUR * 2) == 0
    rows = ground.rows()
    assert ground.prune(AT_ONCE) == 3
    assert {each.job_id for each in ground.log()} == {held.id, waiting.id}
    assert ground.rows() == rows
    assert ground.summaries() == [
        kept(one, Status.SUCCEEDED, Outcome.DONE),
        kept(two, Status.FAILED, Outcome.EXHAUSTED),
        kept(three, Status.SUCCEEDED, Outcome.DONE),
    ]
    assert ground.prune(AT_ONCE) == 0
    with store.transaction() as transaction:
        assert transaction.load([one.id]) == {}
        assert list(transaction.stream(one.id)) == []


def test_a_job_after_a_pruned_one(ground: Ground, store: Store) -> None:
    ended(store)
    ground.prune(AT_ONCE)
    hand = Hand(ground)
    parents = {6: 1, 7: 2, 8: 3}
    accept(ground, [Order(new_spec(n, after=job_id(parent))) for n, parent in parents.items()])
    assert hand.starts() == ids(5, 6, 8)
    assert states(ground)[job_id(7)] == State.FAILED
    assert ground.rows()[job_id(7)].row[1].outcome == Outcome.PARENT_FAILED


def test_a_late_report_of_a_pruned_job_is_refused_and_kept(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec(1))
    leased = lease(store, job)
    write(store, complete(leased, '{"n":1}'))
    ground.prune(AT_ONCE)
    with store.transaction() as transaction:
        settled = settle(transaction, [Report(leased, Succeeded())])
    assert [each.entry.job.id for each in settled.refused] == [job.id]
    assert not settled.unrecorded
    assert ("late_write_refused", job.id, "w1") in ground.audit()


def test_ages_are_counted_to_the_minute_of_the_end(ground: Ground, store: Store) -> None:
    ended(store)  # an hour ago
    assert ground.prune(timedelta(minutes=61)) == 0
    assert ground.prune(timedelta(minutes=59)) == 3
