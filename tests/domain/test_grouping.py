"""The arithmetic of groups, and how the items of one key become few jobs."""

from __future__ import annotations

from itertools import count

import pytest

from leasebook.domain import Arrival, Change, CloseReason, Group, GroupRefused, State, collect
from leasebook.domain.commands import OpenGroup
from leasebook.domain.errors import InvalidValue
from leasebook.domain.events import GroupClosed, ItemsJoined
from leasebook.domain.job import Job
from tests.support.lives import GROUP, Life, at, group_spec, item, job_id, spec


def due(life: Life) -> float:
    return (life.now.due_at - at(0)).total_seconds()


@pytest.mark.acceptance("A08")
def test_each_item_pushes_by_the_window_up_to_the_hold() -> None:
    wide = Group(window=10, max_hold=25, max_size=50)
    life = Life().open_group(item(1, 0), group=wide)
    assert due(life) == 10
    assert due(life.join(item(2, 4), seconds=5)) == 14
    assert due(life.join(item(3, 13), seconds=13)) == 23
    assert due(life.join(item(4, 20), seconds=20)) == 25, "the hold of the first item"
    assert due(life.join(item(5, 24), seconds=24)) == 25


@pytest.mark.acceptance("A08")
def test_items_join_out_of_order_without_pulling_the_time_back() -> None:
    life = Life().open_group(item(1, 5), item(2, 3), seconds=6)
    assert due(life) == 15


@pytest.mark.acceptance("A08")
def test_once_due_it_is_not_postponed_but_takes_items_until_leased() -> None:
    life = Life().open_group(item(1, 0)).join(item(2, 11), seconds=12)
    assert (due(life), len(life.now.items), life.now.state) == (10, 2, State.GROUPED)
    life.lease(13)
    with pytest.raises(GroupRefused):
        life.join(item(3, 13), seconds=14)


@pytest.mark.acceptance("A08")
def test_a_late_collector_changes_no_time_that_is_still_to_come() -> None:
    """The items of seconds 0, 5 and 14 are due at 24, whenever somebody comes to collect them."""
    items = (item(1, 0), item(2, 5), item(3, 14))
    roomy = Group(window=10, max_hold=60, max_size=50)
    assert due(Life().open_group(*items, group=roomy, seconds=14)) == 24
    assert due(Life().open_group(*items, group=roomy, seconds=21)) == 24
    assert due(Life().open_group(*items, group=roomy, seconds=100)) == 100
    # Of an item that came when the group was due already nothing is postponed.
    assert due(Life().open_group(item(1, 0), item(2, 11), group=roomy, seconds=12)) == 12


def test_a_full_group_closes_and_is_due_at_once() -> None:
    life = Life().open_group(item(1), item(2), item(3, 1), seconds=2)
    assert (life.now.state, due(life)) == (State.QUEUED, 2)
    last = life.stream[-1].event
    assert isinstance(last, GroupClosed)
    assert last.reason is CloseReason.FULL
    with pytest.raises(GroupRefused, match="it is queued, no open group"):
        life.join(item(4), seconds=3)


def test_a_group_refuses_too_many_items_and_none() -> None:
    life = Life().open_group(item(1))
    with pytest.raises(GroupRefused, match="4 items would exceed its 3"):
        life.join(item(2), item(3), item(4), seconds=1)
    with pytest.raises(GroupRefused, match="no items"):
        life.join(seconds=1)
    with pytest.raises(InvalidValue, match="items"):
        Life().do(OpenGroup(at(0), group_spec(), ()))
    with pytest.raises(InvalidValue, match="group"):
        Life().do(OpenGroup(at(0), spec(), (item(1),)))
    with pytest.raises(InvalidValue, match="group"):
        Life().enqueue(group=GROUP, group_key="a.md")


def test_a_retry_carries_the_same_items() -> None:
    life = Life().open_group(item(1), item(2)).lease(10).fail(11).lease(71)
    assert life.now.items == ('{"n":1}', '{"n":2}')


def arrivals(*numbers: int, owner: str | None = None, seconds: float = 0) -> list[Arrival]:
    return [Arrival(item(n, seconds), group_spec(99, owner=owner)) for n in numbers]


def gather(open_group: Job | None, waiting: list[Arrival], seconds: float = 1) -> list[Change]:
    numbers = count(1)
    return list(collect(open_group, waiting, lambda: job_id(next(numbers)), at(seconds)))


def item_ids(change: Change) -> list[int]:
    return [n for event in change.events if isinstance(event, ItemsJoined) for n in event.item_ids]


def test_c32_a_burst_fills_group_after_group() -> None:
    changes = gather(None, arrivals(*range(1, 9)))
    assert [item_ids(change) for change in changes] == [[1, 2, 3], [4, 5, 6], [7, 8]]
    states = [change.after.state for change in changes]
    assert states == [State.QUEUED, State.QUEUED, State.GROUPED]
    assert [change.after.id for change in changes] == [job_id(1), job_id(2), job_id(3)]
    assert all(change.after.spec.enqueued_at == at(1) for change in changes)
    assert all(change.after.spec.hold_until == at(60) for change in changes)


def test_the_open_group_is_filled_first_and_keeps_its_first_items_hold() -> None:
    life = Life().open_group(item(1, 0))
    changes = gather(life.job, arrivals(2, 3, 4, seconds=5), seconds=6)
    assert [item_ids(change) for change in changes] == [[2, 3], [4]]
    assert changes[0].before is life.job
    assert changes[0].after.spec.hold_until == at(60)
    assert changes[1].after.spec.hold_until == at(65)


def test_the_hold_counts_from_whoever_came_first() -> None:
    """Producers at once draw the numbers and the times of their items in any order."""
    late, early = arrivals(1, seconds=0.003), arrivals(2)
    [change] = gather(None, [*late, *early])
    assert change.after.spec.hold_until == at(60)


def test_items_of_another_owner_begin_a_group_of_their_own() -> None:
    life = Life().open_group(item(1), owner="ann")
    waiting = arrivals(2, owner="bob") + arrivals(3, owner="ann")
    changes = gather(life.job, waiting)
    assert [item_ids(change) for change in changes] == [[], [2], [3]]
    assert [change.after.spec.owner for change in changes] == ["ann", "bob", "ann"]
    open_ones = [change for change in changes if change.after.state is State.GROUPED]
    assert open_ones == [changes[-1]], "a key has one open group at most"


def test_nothing_to_collect_changes_nothing() -> None:
    assert gather(None, []) == []
    assert gather(Life().open_group(item(1)).job, []) == []
