"""An item whose transaction commits late joins a later group, so that each group is in order."""

from __future__ import annotations

import pytest

from leasebook.domain.states import State
from leasebook.infra.ports import Store

from .ground import Ground
from .making import HOUR, ids, items, lease, now
from .test_collect import collected, new_ids, numbers


@pytest.mark.acceptance("A07")
def test_a_late_commit_waits_for_the_next_group(ground: Ground, store: Store) -> None:
    with ground.caller() as late:
        late(items([1]))
        ground.put_items(items([2]), now(store) - HOUR)
        [first] = collected(store, new_ids())
        assert numbers(first) == [2]
    # Its transaction has ended, its number is lower than what the open group has.
    ground.put_items(items([3]), now(store))
    [first] = collected(store, new_ids(2))
    assert (numbers(first), ground.inbox()) == ([2, 3], 1)
    assert collected(store, new_ids(2)) == []
    assert store.outlook(["default"], ["fold"]).inbox
    lease(store, first)
    ground.put_items(items([4]), now(store))
    [second] = collected(store, new_ids(2))
    assert (numbers(second), second.id, ground.inbox()) == ([1, 4], ids(2)[0], 0)


@pytest.mark.acceptance("A07")
def test_a_late_commit_opens_a_group_when_none_is_open(ground: Ground, store: Store) -> None:
    with ground.caller() as late:
        late(items([1]))
        ground.put_items(items(range(50)), now(store))
        [full] = collected(store, new_ids())
        assert full.state is State.QUEUED
    [second] = collected(store, new_ids(2))
    assert numbers(second) == [1]
