"""Workers: how they report, beat, die and share duties; what is put on record; what comes next."""

from __future__ import annotations

import pytest
from attrs import evolve

from leasebook.domain.job import Policy
from leasebook.infra.enrolment import NAMES_MAX
from leasebook.infra.ports import DataRefused, Evidence, Store

from .ground import Blocked, Ground
from .making import (
    HOUR,
    birth,
    claimed,
    complete,
    enqueue,
    group_birth,
    interrupt,
    items,
    job_id,
    lease,
    new_spec,
    now,
    undone,
    wanted,
    worker,
    write,
)


def bury(store: Store, name: str) -> bool:
    with store.transaction() as transaction:
        return transaction.bury(name)


def is_alive(store: Store, name: str) -> bool:
    with store.transaction() as transaction:
        return transaction.is_alive(name)


def lead(store: Store, duty: str) -> bool:
    with store.transaction() as transaction:
        return transaction.lead(duty)


def test_a_life_of_a_worker(ground: Ground, store: Store) -> None:
    assert store.beats() == {}
    store.enroll(worker("w1"))
    store.enroll(worker("w2"))
    assert store.beats() == {"w1": 0, "w2": 0}
    assert store.beat("w1")
    assert store.beat("w1")
    assert store.beats() == {"w1": 2, "w2": 0}
    assert is_alive(store, "w1")
    store.leave("w1")
    assert store.beats() == {"w2": 0}
    assert not is_alive(store, "w1")
    assert not store.beat("w1")
    assert ground.audit() == [
        ("worker_started", None, "w1"),
        ("worker_started", None, "w2"),
        ("worker_stopped", None, "w1"),
    ]


def test_what_is_put_on_record_of_a_worker() -> None:
    told = evolve(worker("w1"), names=("work", "fold"))
    assert told.detail()["names"] == ["fold", "work"]
    assert (told.detail()["capacity"], told.detail()["code_version"]) == (10, "1")
    crowded = evolve(told, names=tuple(f"job{number}" for number in range(NAMES_MAX + 1)))
    assert "names" not in crowded.detail(), "half of them would look like all of them"


def test_an_id_is_enrolled_once(store: Store) -> None:
    store.enroll(worker("w1"))
    with pytest.raises(DataRefused):
        store.enroll(worker("w1"))
    assert store.beats() == {"w1": 0}


def test_a_stranger_is_not_alive(store: Store) -> None:
    assert not is_alive(store, "w1")
    assert not store.beat("w1")
    assert not bury(store, "w1")


def test_the_dead_do_not_beat(store: Store) -> None:
    store.enroll(worker("w1"))
    store.enroll(worker("w2"))
    assert bury(store, "w1")
    assert not bury(store, "w1")
    assert not is_alive(store, "w1")
    assert not store.beat("w1")
    assert store.beats() == {"w2": 0}


def test_who_is_idle(store: Store) -> None:
    assert not store.is_idle("w1"), "it has not come yet"
    store.enroll(worker("w1"))
    store.enroll(worker("w2"))
    assert store.is_idle("w1")
    [job] = enqueue(store, new_spec(1))
    leased = lease(store, job, "w1")
    assert not store.is_idle("w1")
    assert store.is_idle("w2")
    write(store, complete(leased))
    assert store.is_idle("w1")
    assert bury(store, "w1")
    assert not store.is_idle("w1")


def test_a_lease_whose_row_is_locked_is_one(store: Store, other: Store) -> None:
    store.enroll(worker("w1"))
    [job] = enqueue(store, new_spec(1))
    lease(store, job, "w1")
    with other.transaction() as transaction:
        assert transaction.leased_by("w1", 1)
        assert not store.is_idle("w1")


def test_nobody_is_buried_while_it_leases(ground: Ground, store: Store, other: Store) -> None:
    store.enroll(worker("w1"))
    with store.transaction() as transaction:
        assert transaction.is_alive("w1")
        burial = Blocked(ground, lambda: bury(other, "w1"))
        assert transaction.is_alive("w1")
    assert burial.answer() is True
    assert not is_alive(store, "w1")


def test_a_worker_beats_while_it_leases(store: Store, other: Store) -> None:
    store.enroll(worker("w1"))
    with store.transaction() as transaction:
        assert transaction.is_alive("w1")
        assert other.beat("w1")
    assert store.beats() == {"w1": 1}


def test_whether_a_worker_is_alive_waits_for_the_burial(
    ground: Ground, store: Store, other: Store
) -> None:
    store.enroll(worker("w1"))
    with store.transaction() as transaction:
        assert transaction.bury("w1")
        question = Blocked(ground, lambda: is_alive(other, "w1"))
    assert question.answer() is False


def test_who_was_given_jobs_is_not_buried_meanwhile(
    ground: Ground, store: Store, other: Store
) -> None:
    store.enroll(worker("w1"))
    enqueue(store, new_spec(1))
    with store.transaction() as transaction:
        assert transaction.claim(wanted(worker="w1"))
        burial = Blocked(ground, lambda: bury(other, "w1"))
    assert burial.answer() is True


def test_a_claim_waits_for_a_burial_and_gives_the_dead_nothing(
    ground: Ground, store: Store, other: Store
) -> None:
    store.enroll(worker("w1"))
    enqueue(store, new_spec(1))
    interrupt(store, *enqueue(store, new_spec(2)))
    with store.transaction() as transaction:
        assert transaction.bury("w1")
        question = Blocked(ground, lambda: claimed(other, wanted(worker="w1")))
    assert question.answer() == []
    passing = evolve(wanted(worker="w1"), without=("some key",))
    assert claimed(store, passing) == claimed(store, wanted(worker="nobody")) == []
    assert len(claimed(store, wanted())) == 2, "whoever asks in nobody's name"


def test_a_duty_has_one_leader_until_its_transaction_ends(store: Store, other: Store) -> None:
    with store.transaction() as transaction:
        assert transaction.lead("expiry")
        assert transaction.lead("expiry")
        assert not lead(other, "expiry")
        assert lead(other, "reaping")
    assert lead(other, "expiry")
    with undone(store.transaction()) as transaction:
        assert transaction.lead("expiry")
    assert lead(other, "expiry")


def test_evidence_is_kept(ground: Ground, store: Store) -> None:
    lines = [
        Evidence("late_write_refused", '{"lease":2}', job_id(1), "w1"),
        Evidence("worker_died", "{}", None, "w2"),
    ]
    with store.transaction() as transaction:
        transaction.record(lines)
        transaction.record([])
    assert ground.audit() == [(each.kind, each.job_id, each.worker) for each in lines]


def test_an_outlook_on_nothing(store: Store) -> None:
    look = store.outlook(["default"], ["work"])
    assert (look.next_due, look.next_lease_end, look.inbox) == (None, None, False)


def test_an_outlook_tells_the_next_due_time_of_what_it_serves(store: Store) -> None:
    at = now(store)
    write(
        store,
        birth(new_spec(1), at, at + 3 * HOUR),
        birth(new_spec(2, name="other"), at, at + 2 * HOUR),
        birth(new_spec(3, queue="other"), at - HOUR),
        group_birth(4, at - HOUR),
    )
    assert store.outlook(["default"], ["work"]).next_due == at + 3 * HOUR
    assert store.outlook(["default"], ["work", "other"]).next_due == at + 2 * HOUR
    assert store.outlook(["other", "default"], ["other", "work"]).next_due == at - HOUR
    assert store.outlook(["other"], ["other"]).next_due is None
    folds = store.outlook(["default"], ["work", "fold"]).next_due
    assert folds is not None
    assert folds < at
    assert store.outlook([], []).next_due is None


def test_an_outlook_leaves_out_leased_held_and_finished_jobs(store: Store) -> None:
    running, done = enqueue(store, new_spec(1, policy=Policy(lease=5.0)), new_spec(2))
    ending = lease(store, running)
    write(store, complete(lease(store, done)))
    look = store.outlook(["default"], ["work"])
    assert look.next_due is None
    assert look.next_lease_end == ending.due_at
    assert store.outlook(["elsewhere"], []).next_lease_end == ending.due_at


def test_an_outlook_sees_waiting_items(ground: Ground, store: Store) -> None:
    ground.put_items(items([1]), now(store))
    assert store.outlook(["default"], ["work"]).inbox
