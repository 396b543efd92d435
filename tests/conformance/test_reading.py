"""What a transaction sees: what is committed, and its own writes."""

from __future__ import annotations

import pytest

from leasebook.infra.ports import Evidence, Store

from .ground import Ground
from .making import HOUR, birth, enqueue, ids, items, new_spec, now, undone, wanted, worker


def test_nothing_is_known_of_an_unknown_job(store: Store) -> None:
    enqueue(store, new_spec(1))
    with store.transaction() as transaction:
        assert sorted(transaction.load(ids(1, 2))) == ids(1)
        assert transaction.load([]) == {}
        assert list(transaction.stream(ids(2)[0])) == []


def test_own_writes_are_seen_and_others_wait_for_the_commit(store: Store, other: Store) -> None:
    [known] = ids(1)
    with store.transaction() as transaction:
        transaction.append([birth(new_spec(1), transaction.at - HOUR)])
        assert [job.id for job in transaction.claim(wanted())] == [known]
        assert len(transaction.stream(known)) == 1
        with other.transaction() as another:
            assert another.load([known]) == {}
            assert list(another.stream(known)) == []
            assert list(another.claim(wanted())) == []
        assert other.outlook(["default"], ["work"]).next_due is None
    with other.transaction() as another:
        assert sorted(another.load([known])) == [known]


def test_a_commit_is_seen_by_a_transaction_that_began_before(store: Store, other: Store) -> None:
    with store.transaction() as transaction:
        assert transaction.load(ids(1)) == {}
        enqueue(other, new_spec(1))
        assert sorted(transaction.load(ids(1))) == ids(1)


@pytest.mark.acceptance("Q01")
def test_a_rollback_leaves_no_trace(ground: Ground, store: Store) -> None:
    at = now(store) - HOUR
    store.enroll(worker("w1"))
    ground.put_items(items([1]), at)
    [job] = enqueue(store, new_spec(9))
    rows, log, audit = ground.rows(), ground.log(), ground.audit()
    with undone(store.transaction()) as transaction:
        transaction.append([birth(new_spec(1), at)])
        transaction.record([Evidence("late_write_refused", "{}", job.id, "w1")])
        assert len(transaction.collectable(10)) == 1
        assert len(transaction.claim(wanted())) == 2
        assert transaction.bury("w1")
        assert transaction.lead("duty")
    assert (ground.rows(), ground.log(), ground.audit()) == (rows, log, audit)
    assert ground.inbox() == 1
    assert store.beats() == {"w1": 0}


def test_a_rollback_gives_back_what_it_locked(ground: Ground, store: Store, other: Store) -> None:
    ground.put_items(items([1]), now(store))
    enqueue(store, new_spec(9))
    for _ in range(2):
        with undone(store.transaction()) as transaction:
            assert len(transaction.claim(wanted())) == 1
            assert len(transaction.collectable(10)) == 1
            assert transaction.lead("duty")
        store, other = other, store


def test_time_never_goes_backwards(store: Store, other: Store) -> None:
    enqueue(store, new_spec(1))
    seen = [now(other)]
    for handle in (store, other, store):
        with handle.transaction() as transaction:
            seen.append(transaction.at)
            transaction.claim(wanted())
            seen.append(transaction.at)
            transaction.collectable(10)
            seen.append(transaction.at)
            transaction.overdue(10)
            seen.append(transaction.at)
            transaction.append([])
            seen.append(transaction.at)
        seen.append(now(store))
    assert seen == sorted(seen)
    assert all(at.utcoffset() is not None for at in seen)
