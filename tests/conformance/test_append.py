"""Compare and set: what stands is written, what has moved on is returned."""

from __future__ import annotations

import pytest

from leasebook.domain import change
from leasebook.domain.commands import CloseGroup, Fail, JoinItems, TakeLease
from leasebook.domain.job import Policy
from leasebook.domain.log import Change, already_recorded
from leasebook.domain.states import State
from leasebook.domain.values import OnExhausted
from leasebook.infra.ports import DataRefused, Store

from .ground import Blocked, Ground
from .making import (
    GROUP,
    HOUR,
    SECOND,
    birth,
    complete,
    enqueue,
    group_birth,
    ids,
    lease,
    new_spec,
    now,
    tell,
    things,
    undone,
    write,
)


def kinds(store: Store, change: Change) -> list[str]:
    """What the log tells of the job that a change is about."""
    with store.transaction() as transaction:
        return [each.event.kind for each in transaction.stream(change.after.id)]


def test_a_birth_is_there(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec())
    with store.transaction() as transaction:
        assert transaction.load([job.id]) == {job.id: job}
        [recorded] = transaction.stream(job.id)
    assert (recorded.job_id, recorded.version) == (job.id, 1)
    assert ground.rows()[job.id].seq == recorded.event_id


def test_births_of_one_batch_have_their_sequence_in_order_of_id(
    ground: Ground, store: Store
) -> None:
    enqueue(store, *(new_spec(number) for number in (3, 1, 2)))
    rows = ground.rows()
    assert sorted(rows, key=lambda each: rows[each].seq) == ids(1, 2, 3)


def test_every_field_comes_back(store: Store) -> None:
    at = now(store)
    spec = new_spec(
        1,
        args='{"text":"a \\"b\\" {c,d} \\\\ é 漢 🜚\\n","n":1.5,"none":null}',
        queue='Queue "q", {x}',
        name="näme",
        priority=9,
        policy=Policy(7, 0.25, 123.456, OnExhausted.DROP),
        label="label 'l'",
        owner="owner\\o",
        subject="NULL",
        expires_at=at + HOUR,
    )
    single = birth(spec, at, at + SECOND)
    group = group_birth(2, at, 3, key='{"k",NULL}', owner="NULL", queue="{}")
    write(store, single, group)
    with store.transaction() as transaction:
        for born in (single, group):
            assert transaction.load([born.after.id]) == {born.after.id: born.after}
            stream = transaction.stream(born.after.id)
            assert tuple(each.event for each in stream) == born.events


def test_an_update_moves_the_job_on(store: Store) -> None:
    [job] = enqueue(store, new_spec())
    leased = lease(store, job)
    with store.transaction() as transaction:
        assert transaction.load([job.id]) == {job.id: leased}
        stream = transaction.stream(job.id)
    assert [each.event.kind for each in stream] == ["enqueued", "leased"]
    assert stream[0].xid != stream[1].xid
    assert stream[0].event_id < stream[1].event_id


@pytest.mark.acceptance("E03")
def test_several_events_of_one_change_have_versions_in_a_row(ground: Ground, store: Store) -> None:
    [full] = write(store, group_birth(1, now(store), GROUP.max_size))
    assert full.state is State.QUEUED
    with store.transaction() as transaction:
        stream = transaction.stream(full.id)
        assert transaction.load([full.id]) == {full.id: full}
    assert [each.version for each in stream] == [1, 2, 3]
    assert [each.event.kind for each in stream] == ["enqueued", "items_joined", "group_closed"]
    assert len({each.xid for each in stream}) == 1
    assert ground.rows()[full.id].seq == stream[0].event_id


@pytest.mark.acceptance("A02")
def test_the_row_leaves_with_the_last_event(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec())
    done = complete(lease(store, job), '{"pages":3}')
    write(store, done)
    assert ground.rows() == {}
    assert kinds(store, done) == ["enqueued", "leased", "completed"]
    with store.transaction() as transaction:
        assert transaction.load([job.id]) == {job.id: done.after}


def test_a_held_job_stays(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec(policy=Policy(retries=0)))
    leased = lease(store, job)
    assert leased.lease is not None
    held = tell(store, leased, Fail(leased.at, leased.lease.token, "no\\n{,}"))
    assert held.held
    assert ground.rows()[job.id].row[1].held
    with store.transaction() as transaction:
        assert transaction.load([job.id]) == {job.id: held}


def test_a_failed_job_that_is_not_held_leaves(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec(policy=Policy(0, on_exhausted=OnExhausted.DROP)))
    leased = lease(store, job)
    assert leased.lease is not None
    failed = tell(store, leased, Fail(leased.at, leased.lease.token, "no"))
    assert ground.rows() == {}
    with store.transaction() as transaction:
        assert transaction.load([job.id]) == {job.id: failed}


def test_an_empty_batch(store: Store) -> None:
    with store.transaction() as transaction:
        assert list(transaction.append([])) == []


def test_a_miss_is_returned_and_nothing_of_it_is_written(store: Store, other: Store) -> None:
    jobs = enqueue(store, *(new_spec(number) for number in (1, 2, 3)))
    first, second, third = (lease(store, job) for job in jobs)
    tell(other, second, Fail(second.at, 2, "somebody was faster"))
    late = complete(second, '"late"')
    with store.transaction() as transaction:
        assert list(transaction.append([complete(first), late, complete(third)])) == [late]
    assert kinds(store, late) == ["enqueued", "leased", "retry_scheduled"]
    with store.transaction() as transaction:
        loaded = transaction.load(ids(1, 2, 3))
    states = [loaded[job_id].state for job_id in ids(1, 2, 3)]
    assert states == [State.DONE, State.RETRY_WAIT, State.DONE]


def test_a_change_with_several_events_misses_as_a_whole(store: Store) -> None:
    [group] = write(store, group_birth(1, now(store)))
    joined = change(group, JoinItems(group.at, things(49, group.at)))
    assert [event.kind for event in joined.events] == ["items_joined", "group_closed"]
    closed = tell(store, group, CloseGroup(group.at))
    with store.transaction() as transaction:
        assert list(transaction.append([joined])) == [joined]
        assert transaction.load([group.id]) == {group.id: closed}
    assert kinds(store, joined) == ["enqueued", "items_joined", "group_closed"]


def test_work_that_comes_again_misses_and_is_recognised(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec())
    leased = lease(store, job)
    done = complete(leased, "1")
    write(store, done)
    with store.transaction() as transaction:
        assert list(transaction.append([done])) == [done]
        assert already_recorded(done, transaction.stream(job.id))
        assert not already_recorded(complete(leased, "2"), transaction.stream(job.id))
    assert len(ground.log()) == 3


def test_a_second_birth_of_one_id_misses(ground: Ground, store: Store) -> None:
    [waiting, done] = enqueue(store, new_spec(1), new_spec(2))
    write(store, complete(lease(store, done)))
    again = [birth(new_spec(number), waiting.at) for number in (1, 2)]
    new = birth(new_spec(3), waiting.at)
    with store.transaction() as transaction:
        missed = transaction.append([*again, new])
    assert sorted(each.after.id for each in missed) == ids(1, 2)
    assert sorted(ground.rows()) == ids(1, 3)


def test_births_updates_and_ends_in_one_batch(ground: Ground, store: Store) -> None:
    first, second, third = enqueue(store, *(new_spec(number) for number in (1, 2, 3)))
    running, ending = lease(store, second), lease(store, third)
    batch = [
        complete(ending),
        birth(new_spec(5), first.at),
        change(running, Fail(running.at, 2, "no", delay=1.5)),
        group_birth(4, first.at, GROUP.max_size),
        change(first, TakeLease(first.at, "w2")),
    ]
    with store.transaction() as transaction:
        assert list(transaction.append(batch)) == []
        loaded = transaction.load(ids(1, 2, 3, 4, 5))
    assert loaded == {each.after.id: each.after for each in batch}
    assert sorted(ground.rows()) == ids(1, 2, 4, 5)


def test_a_large_batch(ground: Ground, store: Store) -> None:
    jobs = enqueue(store, *(new_spec(number) for number in range(500)))
    with store.transaction() as transaction:
        assert not transaction.append([change(job, TakeLease(job.at, "w")) for job in jobs])
        assert len(transaction.leased_by("w", 1000)) == 500
    assert len(ground.log()) == 1000


def test_an_open_group_is_closed_and_the_next_opened_in_one_batch(store: Store) -> None:
    at = now(store)
    [group] = write(store, group_birth(2, at))
    closing, opening = change(group, CloseGroup(at)), group_birth(1, at)
    with store.transaction() as transaction:
        assert not transaction.append([opening, closing])
        loaded = transaction.load(ids(1, 2))
    assert loaded == {each.after.id: each.after for each in (opening, closing)}


def test_two_open_groups_of_one_key_are_refused(ground: Ground, store: Store) -> None:
    at = now(store)
    write(store, group_birth(1, at))
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.append([birth(new_spec(3), at), group_birth(2, at)])
    assert sorted(ground.rows()) == ids(1)


def test_a_write_waits_for_the_row_and_then_misses(
    ground: Ground, store: Store, other: Store
) -> None:
    [job] = enqueue(store, new_spec())
    leased = lease(store, job)

    def late() -> list[Change]:
        with other.transaction() as transaction:
            return list(transaction.append([complete(leased)]))

    with store.transaction() as transaction:
        transaction.append([change(leased, Fail(leased.at, 2, "faster"))])
        blocked = Blocked(ground, late)
    assert [each.after.state for each in blocked.answer()] == [State.DONE]


def test_a_write_waits_for_the_row_and_stands_when_it_was_let_go(
    ground: Ground, store: Store, other: Store
) -> None:
    [job] = enqueue(store, new_spec())
    leased = lease(store, job)

    def patient() -> list[Change]:
        with other.transaction() as transaction:
            return list(transaction.append([complete(leased)]))

    with undone(store.transaction()) as transaction:
        transaction.append([change(leased, Fail(leased.at, 2, "undone"))])
        blocked = Blocked(ground, patient)
    assert blocked.answer() == []
    assert ground.rows() == {}
