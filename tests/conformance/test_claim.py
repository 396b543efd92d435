"""Which jobs a claim gives, in which order."""

from __future__ import annotations

import pytest
from attrs import evolve as replace

from leasebook.domain import change
from leasebook.domain.commands import Fail
from leasebook.domain.job import Group, Policy
from leasebook.infra.ports import Store

from .making import (
    HOUR,
    SECOND,
    birth,
    claimed,
    enqueue,
    group_birth,
    ids,
    interrupt,
    lease,
    new_spec,
    now,
    tell,
    wanted,
    write,
)


@pytest.mark.acceptance("P03")
def test_claim_order_is_priority_then_due_time_then_sequence(store: Store) -> None:
    at = now(store) - HOUR
    write(store, birth(new_spec(4), at))
    write(store, birth(new_spec(3), at))
    write(store, birth(new_spec(2), at - SECOND, at + SECOND))
    write(store, birth(new_spec(1, priority=4), at - HOUR))
    write(store, birth(new_spec(5, priority=9), at, at + 2 * SECOND))
    write(store, birth(new_spec(6, priority=0), at - 2 * HOUR))
    assert claimed(store, wanted()) == ids(5, 4, 3, 2, 1, 6)
    assert claimed(store, wanted(limit=3)) == ids(5, 4, 3)


@pytest.mark.acceptance("P03")
def test_priority_goes_over_queues_and_queues_are_served_as_given(store: Store) -> None:
    enqueue(store, new_spec(1, queue="a"), new_spec(2, queue="a", priority=0), ago=2 * HOUR)
    enqueue(store, new_spec(3, queue="b", priority=9), new_spec(4, queue="b"))
    enqueue(store, new_spec(5, queue="c"))
    assert claimed(store, wanted("a", "b")) == ids(3, 1, 4, 2)
    assert claimed(store, wanted("b", "a")) == ids(3, 4, 1, 2)
    assert claimed(store, wanted("nobody")) == []


def test_queues_that_look_like_syntax(store: Store) -> None:
    names = ('a,"b"', "{c}", "NULL", "d\\", " e", "é 漢")
    enqueue(store, *(new_spec(number, queue=name) for number, name in enumerate(names)))
    for number, name in enumerate(names):
        assert claimed(store, wanted(name)) == ids(number)
    assert claimed(store, wanted(*reversed(names))) == ids(5, 4, 3, 2, 1, 0)


def test_a_name_without_a_handler_is_left_alone_and_blocks_nobody(store: Store) -> None:
    enqueue(store, *(new_spec(number, name="unknown") for number in range(20)), ago=2 * HOUR)
    enqueue(store, new_spec(21))
    assert claimed(store, wanted(limit=1)) == ids(21)
    assert claimed(store, wanted(names=["unknown"], limit=1)) == ids(0)
    assert claimed(store, wanted(names=[])) == []


def test_an_open_group_of_a_key_that_is_passed_over_can_still_be_closed(store: Store) -> None:
    """An item that came late waits for it to close, and a job of the key for that item.

    With one slot that job was all that was ever claimed of the key, and nothing of it went on.
    """
    serial = Group(window=0, max_hold=0, serial=True)
    enqueue(store, new_spec(1, ordering_key="k"), new_spec(2, ordering_key="other"), new_spec(3))
    write(store, group_birth(4, now(store) - SECOND, group=serial, ordering_key="k"))
    assert claimed(store, replace(wanted(), without=("k",))) == ids(2, 3, 4)


def test_nothing_before_its_time(store: Store) -> None:
    at = now(store)
    write(store, birth(new_spec(1), at, at + HOUR), birth(new_spec(2), at - SECOND))
    assert claimed(store, wanted()) == ids(2)


def test_the_floor_leaves_out_what_is_older(store: Store) -> None:
    at = now(store) - HOUR
    write(store, *(birth(new_spec(n), at - HOUR, at + n * SECOND) for n in (1, 2, 3)))
    assert claimed(store, wanted(since=at + 2 * SECOND)) == ids(2, 3)
    assert claimed(store, wanted(since=at + HOUR)) == []


def test_only_waiting_jobs(store: Store) -> None:
    enqueue(store, *(new_spec(n) for n in (1, 2, 3)), new_spec(4, policy=Policy(retries=0)))
    with store.transaction() as transaction:
        jobs = transaction.load(ids(1, 2, 3, 4))
    lease(store, jobs[ids(1)[0]])
    retrying = lease(store, jobs[ids(2)[0]])
    tell(store, retrying, Fail(retrying.at, 2, "no", delay=1))
    later = lease(store, jobs[ids(3)[0]])
    tell(store, later, Fail(later.at, 2, "no", delay=7200))
    held = lease(store, jobs[ids(4)[0]])
    tell(store, held, Fail(held.at, 2, "no"))
    assert claimed(store, wanted()) == ids(2)


def test_a_group_is_claimed_once_it_is_due(store: Store) -> None:
    at = now(store)
    write(store, group_birth(1, at - HOUR, key="due"), group_birth(2, at, key="later"))
    assert claimed(store, wanted()) == ids(1)


def test_suspects_keep_their_place_and_are_limited(store: Store) -> None:
    jobs = enqueue(store, *(new_spec(number) for number in range(6)))
    for number in (1, 2, 4):
        interrupt(store, jobs[number])
    assert claimed(store, wanted(suspects=2)) == ids(0, 1, 2, 3, 5)
    assert claimed(store, wanted(suspects=0)) == ids(0, 3, 5)
    assert claimed(store, wanted(limit=2, suspects=1)) == ids(0, 1)
    # They wait below the floor for their turn, so it does not hold for them.
    assert claimed(store, wanted(suspects=1, since=now(store) + HOUR)) == ids(1)
    assert claimed(store, wanted(limit=3)) == ids(0, 1, 2)


def test_what_another_transaction_holds_is_left_out(store: Store, other: Store) -> None:
    enqueue(store, *(new_spec(number) for number in range(5)))
    with store.transaction() as transaction:
        assert [job.id for job in transaction.claim(wanted(limit=2))] == ids(0, 1)
        assert claimed(other, wanted(limit=2)) == ids(2, 3)
        with other.transaction() as another:
            assert [job.id for job in another.claim(wanted(limit=2))] == ids(2, 3)
            assert [job.id for job in transaction.claim(wanted())] == ids(0, 1, 4)
    assert claimed(other, wanted()) == ids(0, 1, 2, 3, 4)


def test_what_was_written_but_not_committed_is_left_out(store: Store, other: Store) -> None:
    first, second = enqueue(store, new_spec(1), new_spec(2))
    running = lease(store, first)
    with store.transaction() as transaction:
        transaction.append([change(running, Fail(running.at, 2, "no"))])
        assert claimed(other, wanted()) == [second.id]


def test_a_claim_gives_the_whole_job(store: Store) -> None:
    jobs = enqueue(store, new_spec(1, label="l", owner="o", subject="s"))
    groups = write(store, group_birth(2, now(store) - HOUR, 3))
    with store.transaction() as transaction:
        assert list(transaction.claim(wanted())) == jobs + groups
