"""Counting the whole queue, and whose turn it is: the same in every store."""

from __future__ import annotations

import pytest

from leasebook.domain.commands import Fail
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import Store
from leasebook.projections.depth import Depth

from .ground import Ground
from .making import (
    HOUR,
    birth,
    enqueue,
    group_birth,
    items,
    lease,
    new_spec,
    now,
    tell,
    undone,
    write,
)


def depth_of(store: Store) -> Depth:
    with store.transaction() as transaction:
        return transaction.depth()


@pytest.mark.acceptance("A09")
def test_every_kind_of_job_counts_where_it_belongs(ground: Ground, store: Store) -> None:
    assert depth_of(store) == Depth(0, 0, 0)
    at = now(store)
    _due, expired, again, held = enqueue(store, *map(new_spec, range(1, 5)))
    assert depth_of(store) == Depth(4, 0, 4)
    write(store, birth(new_spec(6), at - HOUR, at + HOUR))  # Delayed.
    write(store, group_birth(7, at))  # A group that is not due.
    ground.put_items(items([1, 2]), at)
    assert depth_of(store) == Depth(4, 0, 8)
    lease(store, expired)  # An hour ago, for ten minutes.
    assert depth_of(store) == Depth(4, 0, 8)
    lease(store, write(store, birth(new_spec(8), at))[0])
    assert depth_of(store) == Depth(4, 1, 9)
    begun = lease(store, again)
    assert begun.lease is not None
    tell(store, begun, Fail(at, begun.lease.token, "boom", delay=3600.0))
    assert depth_of(store) == Depth(3, 2, 9)
    begun = lease(store, held)
    assert begun.lease is not None
    failed = tell(store, begun, Fail(at, begun.lease.token, "boom", retry=False))
    assert failed.held
    assert depth_of(store) == Depth(2, 2, 8)


@pytest.mark.acceptance("A09", "Q14")
def test_blocked_jobs_count_in_the_total_only(ground: Ground, store: Store) -> None:
    with ground.caller() as caller:
        caller([Order(new_spec(number, ordering_key="k")) for number in (1, 2, 3)])
    assert depth_of(store) == Depth(1, 0, 3, stopped=2)


@pytest.mark.acceptance("A09")
def test_who_is_blocked_counts_in_the_total_only(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept([Order(new_spec(n, ordering_key="k")) for n in range(1, 4)])
    assert depth_of(store) == Depth(1, 0, 3, stopped=2)


@pytest.mark.acceptance("A09")
def test_a_duty_is_due_once_in_its_time(store: Store, other: Store) -> None:
    def left(handle: Store, seconds: float, duty: str = "line") -> float:
        with handle.transaction() as transaction:
            return transaction.due_again(duty, seconds)

    assert left(store, 60.0) == 0.0
    assert 0.0 < left(store, 60.0) <= 60.0
    assert 0.0 < left(other, 60.0) <= 60.0
    assert left(other, 60.0, "another") == 0.0
    assert left(other, 0.0) == 0.0


@pytest.mark.acceptance("A09")
def test_a_stamp_that_was_rolled_back_is_none(store: Store) -> None:
    with undone(store.transaction()) as transaction:
        assert transaction.due_again("line", 60.0) == 0.0
    with store.transaction() as transaction:
        assert transaction.due_again("line", 60.0) == 0.0
