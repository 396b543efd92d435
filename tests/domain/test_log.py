"""Replays give the same state, and what is sent twice is applied once."""

from __future__ import annotations

import pytest

from leasebook.domain import Change, Job, Recorded, already_recorded, change, evolve, fold
from leasebook.domain.commands import (
    Command,
    Complete,
    Enqueue,
    ExpireLease,
    Fail,
    OpenGroup,
    Release,
    Renew,
    TakeLease,
)
from leasebook.domain.values import ExpiryCause, ReleaseReason
from tests.support.lives import Life, at, group_spec, item, job_id, spec


def long_life() -> Life:
    life = Life().open_group(item(1), item(2), retries=5).join(item(3), seconds=5).lease(20)
    life.release(21, delay=5).lease(30).renew(400, 900).fail(700).lease(800).expire(900)
    return life.lease(901).complete(902, result='{"pages":3}')


@pytest.mark.acceptance("Q10")
def test_a_replay_gives_the_same_state_each_time_and_from_every_cut() -> None:
    life = long_life()
    events = [recorded.event for recorded in life.stream]
    assert fold(events) == fold(events) == life.job
    for cut in range(len(events) + 1):
        job: Job | None = fold(events[:cut])
        for event in events[cut:]:
            job = evolve(job, event)
        assert job == life.job
    assert life.now.version == len(events)
    assert fold(()) is None


class OneStream:
    """A store in small: appends under compare-and-set, and knows a retransmission."""

    def __init__(self) -> None:
        self.stream: list[Recorded] = []

    def append(self, wanted: Change) -> bool:
        if already_recorded(wanted, self.stream):
            return False
        assert len(self.stream) == (0 if wanted.before is None else wanted.before.version)
        for event in wanted.events:
            version = len(self.stream) + 1
            self.stream.append(Recorded(wanted.after.id, version, version, 7, event))
        return True


def commands() -> list[Command]:
    return [
        Enqueue(at(0), spec(retries=9, lease=300)),
        TakeLease(at(1), "w1"),
        Renew(at(400), 2, at(900)),
        Fail(at(500), 2, "boom", 60),
        TakeLease(at(600), "w1"),
        Release(at(601), 5, ReleaseReason.RATE_LIMITED, 30),
        TakeLease(at(640), "w1"),
        ExpireLease(at(650), 7, ExpiryCause.WORKER_LOST),
        TakeLease(at(660), "w2"),
        Complete(at(661), 9),
    ]


@pytest.mark.acceptance("Q10")
def test_every_change_that_is_sent_again_is_applied_once() -> None:
    store, job, sent = OneStream(), None, list[Change]()
    for command in commands():
        made = change(job, command)
        assert store.append(made)
        sent.append(made)
        assert not any(store.append(again) for again in sent), "all that went before, too"
        job = made.after
    assert fold(recorded.event for recorded in store.stream) == job
    assert len(store.stream) == len(sent)


def test_the_same_work_decided_again_at_a_later_time_is_a_retransmission() -> None:
    """Times that hang on the moment move with it, and a time-out that is fixed does not (Q09)."""
    life = Life().enqueue(retries=9, lease=300).lease(1, "w1")
    for first, second in (
        (Fail(at(2), 2, "boom", 60), Fail(at(3), 2, "boom", 60)),
        (Release(at(2), 2, ReleaseReason.SNOOZE, 9), Release(at(3), 2, ReleaseReason.SNOOZE, 9)),
        (Renew(at(400), 2, at(9_000)), Renew(at(402), 2, at(9_000))),
        (Complete(at(2), 2, "1"), Complete(at(3), 2, "1")),
    ):
        store = OneStream()
        store.stream = list(life.stream)
        job = Life().enqueue(retries=9, lease=300).lease(1).now
        assert store.append(change(job, first))
        assert already_recorded(change(job, second), store.stream)


def test_an_answer_is_recognised_though_the_lease_was_renewed_after_the_worker_looked() -> None:
    life = Life().enqueue(lease=60).lease(1, "w1")
    as_the_worker_knows_it = life.now
    life.renew(40, 100).complete(90)
    assert already_recorded(change(as_the_worker_knows_it, Complete(at(90), 2)), life.stream)
    other = change(as_the_worker_knows_it, Complete(at(90), 2, "1"))
    assert not already_recorded(other, life.stream)


def test_legitimate_repetitions_are_distinct() -> None:
    """Two equal failures in a row are two events: each stands at its own version (Q09)."""
    life = Life().enqueue(retries=9).lease(1).fail(2, delay=0).lease(2).fail(2, delay=0)
    kinds = [recorded.event.kind for recorded in life.stream]
    assert kinds.count("retry_scheduled") == 2
    assert life.now.attempts == 2
    next_failure = change(life.lease(2).job, Fail(at(2), life.token, "ValueError: boom", 0))
    assert not already_recorded(next_failure, life.stream)


def test_other_work_at_the_same_version_is_no_retransmission() -> None:
    life = Life().enqueue().lease(1, "w1")
    job = life.now
    life.complete(2)
    assert already_recorded(change(job, Complete(at(2), 2)), life.stream)
    assert not already_recorded(change(job, Complete(at(2), 2, "1")), life.stream)
    assert not already_recorded(change(job, Fail(at(2), 2, "boom")), life.stream)
    waiting = Life().enqueue()
    before = waiting.now
    waiting.lease(1, "w1")
    assert not already_recorded(change(before, TakeLease(at(1), "w2")), waiting.stream)
    assert not already_recorded(change(waiting.job, Complete(at(2), 2)), waiting.stream)


def test_a_group_with_another_id_is_another_group() -> None:
    first = change(None, OpenGroup(at(0), group_spec(1), (item(1),)))
    store = OneStream()
    assert store.append(first)
    assert already_recorded(first, store.stream)
    other = change(None, OpenGroup(at(0), group_spec(2), (item(1),)))
    assert other.after.id == job_id(2)
    assert not already_recorded(other, store.stream)
