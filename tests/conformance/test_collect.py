"""The inbox: items by key, in order, each once, under the lock of its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

import pytest

from leasebook.domain import change, collect
from leasebook.domain.commands import CloseGroup, TakeLease
from leasebook.domain.job import Job
from leasebook.domain.log import Change
from leasebook.domain.states import State
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import KeyArrivals, Store, Transaction

from .ground import Ground
from .making import (
    GROUP,
    HOUR,
    SECOND,
    group_birth,
    ids,
    item_spec,
    items,
    job_id,
    lease,
    now,
    tell,
    undone,
    wanted,
    write,
)


def new_ids(first: int = 1) -> Callable[[], UUID]:
    """Ids of new groups, in order."""
    numbers = count(first)
    return lambda: job_id(next(numbers))


def gather(transaction: Transaction, new_id: Callable[[], UUID], limit: int = 1000) -> list[Change]:
    """One collection as a worker does it."""
    made: list[Change] = []
    for found in transaction.collectable(limit):
        made += collect(found.open_group, found.arrivals, new_id, transaction.at)
    assert not transaction.append(made)
    return made


def collected(store: Store, new_id: Callable[[], UUID], limit: int = 1000) -> list[Job]:
    """The groups that one collection made or changed."""
    with store.transaction() as transaction:
        return [each.after for each in gather(transaction, new_id, limit)]


def seen(found: Sequence[KeyArrivals]) -> dict[str, list[str]]:
    """The arguments of the items of each key."""
    return {
        each.arrivals[0].spec.group_key or "": [arrival.item.args for arrival in each.arrivals]
        for each in found
    }


def numbers(job: Job) -> list[int]:
    return [int(item) for item in job.items]


def test_an_empty_inbox(store: Store) -> None:
    with store.transaction() as transaction:
        assert list(transaction.collectable(10)) == []


def test_an_item_comes_with_its_spec_time_and_number(ground: Ground, store: Store) -> None:
    at = now(store) - HOUR
    spec = item_spec(
        '{"a":[1,"x\\\\,y",{}]}',
        key='{"k",NULL}\\',
        queue='q"',
        name="fold, {it}",
        priority=7,
        label="l",
        owner="o",
        subject="s",
        expires_at=at + 9 * HOUR,
    )
    ground.put_items([Order(spec)], at)
    with store.transaction() as transaction:
        [found] = transaction.collectable(10)
    assert found.open_group is None
    [arrival] = found.arrivals
    assert (arrival.item.args, arrival.item.at) == (spec.args, at)
    assert arrival.item.id > 0
    for field in ("name", "queue", "priority", "policy", "label", "owner", "subject", "expires_at"):
        assert getattr(arrival.spec, field) == getattr(spec, field)
    assert (arrival.spec.group, arrival.spec.group_key) == (spec.group, spec.group_key)
    assert arrival.spec.args == "null"


def test_items_leave_the_inbox_with_the_commit(ground: Ground, store: Store) -> None:
    ground.put_items(items([1, 2]), now(store))
    with undone(store.transaction()) as transaction:
        assert seen(transaction.collectable(10)) == {"k": ["1", "2"]}
        assert list(transaction.collectable(10)) == []
    assert ground.inbox() == 2
    with store.transaction() as transaction:
        assert seen(transaction.collectable(10)) == {"k": ["1", "2"]}
    assert ground.inbox() == 0


@pytest.mark.acceptance("A07")
def test_items_of_one_key_form_one_job_in_order_of_arrival(ground: Ground, store: Store) -> None:
    at = now(store)
    for number in range(6):
        ground.put_items(items([number], key="ab"[number % 2]), at)
    first, second = collected(store, new_ids())
    assert (numbers(first), numbers(second)) == ([0, 2, 4], [1, 3, 5])
    assert first.state is State.GROUPED
    ground.put_items(items([6], key="a"), at)
    [first] = collected(store, new_ids())
    assert first.id == job_id(1)
    assert numbers(first) == [0, 2, 4, 6]


def test_keys_of_other_queues_and_names_are_other_groups(ground: Ground, store: Store) -> None:
    at = now(store)
    for fields in ({}, {"queue": "other"}, {"name": "other"}):
        ground.put_items(items([1], **fields), at)
    assert len(collected(store, new_ids())) == 3
    ground.put_items(items([2], queue="other"), at)
    [job] = collected(store, new_ids())
    assert (job.spec.queue, numbers(job)) == ("other", [1, 2])


@pytest.mark.acceptance("A07")
@pytest.mark.case("C32")
def test_the_51st_item_opens_the_next_group(ground: Ground, store: Store) -> None:
    ground.put_items(items(range(101)), now(store))
    groups = collected(store, new_ids())
    assert [len(job.items) for job in groups] == [50, 50, 1]
    assert [number for job in groups for number in numbers(job)] == list(range(101))
    assert [job.state for job in groups] == [State.QUEUED, State.QUEUED, State.GROUPED]
    ground.put_items(items(range(49)), now(store))
    [third] = collected(store, new_ids())
    assert (third.id, len(third.items), third.state) == (job_id(3), 50, State.QUEUED)


def test_a_collection_over_an_open_group_fills_it_first(ground: Ground, store: Store) -> None:
    ground.put_items(items(range(40)), now(store))
    collected(store, new_ids())
    ground.put_items(items(range(40, 70)), now(store))
    first, second = collected(store, new_ids(2))
    assert numbers(first) == list(range(50))
    assert numbers(second) == list(range(50, 70))
    assert [first.id, second.id] == ids(1, 2)


@pytest.mark.acceptance("A07")
@pytest.mark.case("C35")
def test_an_item_that_arrives_while_its_group_runs_opens_the_next(
    ground: Ground, store: Store
) -> None:
    ground.put_items(items([1]), now(store) - HOUR)
    [running] = collected(store, new_ids())
    running = lease(store, running)
    ground.put_items(items([2, 3]), now(store))
    [following] = collected(store, new_ids(2))
    assert following.id == job_id(2)
    assert numbers(following) == [2, 3]
    with store.transaction() as transaction:
        assert transaction.load([running.id]) == {running.id: running}


@pytest.mark.acceptance("A08")
@pytest.mark.case("C33")
def test_a_group_is_due_a_window_after_its_newest_item_within_its_hold(
    ground: Ground, store: Store
) -> None:
    first = now(store)
    window, hold = (timedelta(seconds=each) for each in (GROUP.window, GROUP.max_hold))
    ids_of_groups = new_ids()
    for seconds, due in ((0, window), (9, 9 * SECOND + window), (55, hold), (59, hold)):
        ground.put_items(items([seconds]), first + seconds * SECOND)
        [group] = collected(store, ids_of_groups)
        assert group.due_at == first + due
    assert numbers(group) == [0, 9, 55, 59]
    assert store.outlook(["default"], ["fold"]).next_due == first + hold


@pytest.mark.acceptance("A08")
def test_a_due_group_takes_items_and_is_never_postponed(ground: Ground, store: Store) -> None:
    ground.put_items(items([1]), now(store) - HOUR)
    [due] = collected(store, new_ids())
    ground.put_items(items([2]), now(store))
    [after] = collected(store, new_ids())
    assert numbers(after) == [1, 2]
    assert after.due_at == due.due_at <= after.at


def test_at_most_the_limit_and_the_oldest_first(ground: Ground, store: Store) -> None:
    for number in range(6):
        ground.put_items(items([number], key="ab"[number % 2]), now(store))
    with store.transaction() as transaction:
        assert seen(transaction.collectable(3)) == {"a": ["0", "2"], "b": ["1"]}
    assert ground.inbox() == 3
    with store.transaction() as transaction:
        assert seen(transaction.collectable(3)) == {"b": ["3", "5"], "a": ["4"]}


@pytest.mark.acceptance("A07")
def test_a_key_that_another_collector_holds_is_left_out(
    ground: Ground, store: Store, other: Store
) -> None:
    ground.put_items(items([1], key="a"), now(store))
    with store.transaction() as transaction:
        [mine] = gather(transaction, new_ids())
        ground.put_items([*items([2], key="a"), *items([3], key="b")], now(other))
        [theirs] = collected(other, new_ids(2))
        assert (numbers(mine.after), numbers(theirs)) == ([1], [3])
    assert ground.inbox() == 1
    [joined] = collected(other, new_ids(3))
    assert (joined.id, numbers(joined)) == (job_id(1), [1, 2])


def test_a_key_is_free_again_after_a_rollback(ground: Ground, store: Store, other: Store) -> None:
    ground.put_items(items([1]), now(store))
    with undone(store.transaction()) as transaction:
        assert len(gather(transaction, new_ids())) == 1
        assert collected(other, new_ids(2)) == []
    [group] = collected(other, new_ids(2))
    assert group.id == job_id(2)


def test_a_key_whose_open_group_is_locked_is_left_out(
    ground: Ground, store: Store, other: Store
) -> None:
    [group] = write(store, group_birth(1, now(store) - HOUR))
    ground.put_items([*items([2]), *items([3], key="free")], now(store))
    with store.transaction() as transaction:
        assert [job.id for job in transaction.claim(wanted())] == [group.id]
        [free] = collected(other, new_ids(2))
        assert numbers(free) == [3]
        transaction.append([change(group, TakeLease(transaction.at, "w1"))])
    assert ground.inbox() == 1
    [following] = collected(other, new_ids(3))
    assert (following.id, numbers(following)) == (job_id(3), [2])


def test_the_open_group_is_locked_by_its_collector(
    ground: Ground, store: Store, other: Store
) -> None:
    ground.put_items(items([1]), now(store) - HOUR)
    collected(store, new_ids())
    ground.put_items(items([2]), now(store))
    with store.transaction() as transaction:
        [found] = transaction.collectable(10)
        assert found.open_group is not None
        assert found.open_group.id == job_id(1)
        with other.transaction() as another:
            assert list(another.claim(wanted())) == []


def test_a_closed_group_takes_no_more(ground: Ground, store: Store) -> None:
    [group] = write(store, group_birth(1, now(store)))
    tell(store, group, CloseGroup(group.at))
    ground.put_items(items([2]), now(store))
    with store.transaction() as transaction:
        [found] = transaction.collectable(10)
        assert found.open_group is None


def test_an_item_of_another_owner_opens_a_group_of_its_own(ground: Ground, store: Store) -> None:
    at: datetime = now(store)
    ground.put_items(items([1, 2], owner="a"), at)
    ground.put_items(items([3], owner="b"), at)
    ground.put_items(items([4], owner="a"), at)
    groups = collected(store, new_ids())
    assert [numbers(job) for job in groups] == [[1, 2], [3], [4]]
    assert [job.spec.owner for job in groups] == ["a", "b", "a"]
    assert [job.state for job in groups] == [State.QUEUED, State.QUEUED, State.GROUPED]


@pytest.mark.acceptance("A07")
def test_a_thousand_items_in_one_collection(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept(items(range(1100)))
    groups = collected(store, new_ids())
    assert [len(job.items) for job in groups] == [50] * 20
    assert ground.inbox() == 100
    more = collected(store, new_ids(100))
    assert [number for job in groups + more for number in numbers(job)] == list(range(1100))
