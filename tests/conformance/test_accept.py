"""Orders in a caller's transaction: born, stamped and numbered, or gone without a trace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from leasebook.domain.errors import InvalidValue
from leasebook.domain.job import Policy
from leasebook.domain.values import OnExhausted, OnExpired
from leasebook.infra.caller_ports import Alike, Order, Receipt
from leasebook.infra.documents import encode_head
from leasebook.infra.ports import Store

from .ground import Ground
from .making import HOUR, SECOND, claimed, ids, items, new_spec, now, undone, wanted


@pytest.mark.acceptance("Q01")
def test_orders_of_a_caller_that_rolls_back_leave_no_trace(ground: Ground, store: Store) -> None:
    orders = [Order(new_spec(1)), *items([1, 2])]
    with undone(ground.caller()) as accept:
        accept(orders)
    assert (ground.rows(), ground.log(), ground.inbox()) == ({}, [], 0)


def test_orders_of_a_caller_are_seen_after_its_commit(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept([Order(new_spec(1)), *items([1, 2])])
        assert (ground.rows(), ground.inbox()) == ({}, 0)
    assert list(ground.rows()) == ids(1)
    assert ground.inbox() == 2


def test_an_order_is_stamped_with_the_databases_time(ground: Ground, store: Store) -> None:
    before = now(store)
    with ground.caller() as accept:
        accept(
            [
                Order(new_spec(1)),
                Order(new_spec(2), delay=60),
                Order(new_spec(3), run_at=before + HOUR),
                Order(new_spec(4), run_at=before - HOUR),
                Order(new_spec(5), run_at=before + SECOND, delay=60),
            ]
        )
    after = now(store)
    with store.transaction() as transaction:
        jobs = transaction.load(ids(1, 2, 3, 4, 5))
    assert all(before <= job.at == job.spec.enqueued_at <= after for job in jobs.values())
    waits = [jobs[known].due_at - jobs[known].at for known in ids(1, 2, 4, 5)]
    assert waits == [0 * SECOND, 60 * SECOND, 0 * SECOND, 60 * SECOND]
    assert jobs[ids(3)[0]].due_at == before + HOUR


def alike_to(pattern: Order, its_ids: list[UUID], args: list[str]) -> Alike:
    """Orders that differ from a pattern in id and arguments."""
    return Alike(pattern, its_ids, args, encode_head(pattern.spec))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"priority": 9, "label": "x", "queue": "other", "owner": "o", "subject": "s"},
        {"ordering_key": "k"},
        {"policy": Policy(0, 1.5, 2.0, OnExhausted.DROP, OnExpired.ABORT)},
    ],
)
def test_orders_that_are_alike_are_orders_like_any_other(
    ground: Ground, store: Store, fields: dict[str, Any]
) -> None:
    pattern = Order(new_spec(9, **fields), delay=60)
    alike = alike_to(pattern, ids(1, 2, 3), ['{"n":1}', '{"text":"\\"\\\\ä"}', "{}"])
    with ground.caller() as accept:
        receipts = accept(alike)
    assert [each.id for each in receipts] == ids(1, 2, 3) == list(ground.rows())
    with store.transaction() as transaction:
        jobs = transaction.load(ids(1, 2, 3))
    for order in alike:
        job = jobs[order.spec.id]
        assert evolve(job.spec, enqueued_at=order.spec.enqueued_at) == order.spec
        assert job.due_at - job.at == 60 * SECOND
    assert [order.spec.args for order in alike[1:]] == list(alike.args[1:])


def test_one_that_is_refused_refuses_all_that_are_alike(ground: Ground, store: Store) -> None:
    pattern = Order(new_spec(9, expires_at=now(store) - HOUR))
    with ground.caller() as accept:
        with pytest.raises(InvalidValue, match="expires_at"):
            accept(alike_to(pattern, ids(1, 2), ["{}", "{}"]))
        accept(alike_to(Order(new_spec(9)), ids(3), ["{}"]))
    assert list(ground.rows()) == ids(3)


def test_sequence_and_numbers_follow_the_orders(ground: Ground, store: Store) -> None:
    orders = [
        Order(new_spec(3)),
        *items([1, 2]),
        Order(new_spec(1)),
        Order(new_spec(2)),
        *items([3]),
    ]
    with ground.caller() as accept:
        receipts = [*accept(orders), *accept([Order(new_spec(0))])]
    singles = [receipts[place] for place in (0, 3, 4, 6)]
    assert [each.id for each in singles] == ids(3, 1, 2, 0)
    assert [each.item_id for each in singles] == [None] * 4
    rows = ground.rows()
    assert sorted(rows, key=lambda each: rows[each].seq) == ids(3, 1, 2, 0)
    numbers = [receipts[place].item_id or 0 for place in (1, 2, 5)]
    assert numbers == sorted(set(numbers))
    assert [receipts[place].id for place in (1, 2, 5)] == [None] * 3
    with store.transaction() as transaction:
        [found] = transaction.collectable(10)
    assert [each.item.id for each in found.arrivals] == numbers
    assert [each.item.args for each in found.arrivals] == ["1", "2", "3"]


def test_receipts_and_events_name_the_callers_transaction(ground: Ground) -> None:
    def numbers(receipts: list[Receipt]) -> set[int]:
        return {each.xid for each in receipts}

    with ground.caller() as accept:
        first = [*accept([Order(new_spec(1))]), *accept([Order(new_spec(2)), *items([1])])]
    with ground.caller() as accept:
        second = [*accept([Order(new_spec(3))])]
    assert len(numbers(first)) == len(numbers(second)) == 1
    assert numbers(first) != numbers(second)
    assert [each.xid for each in ground.log()] == [first[0].xid, first[0].xid, second[0].xid]


def test_no_orders(ground: Ground) -> None:
    with ground.caller() as accept:
        assert list(accept([])) == []


def test_one_refused_order_refuses_all_and_the_transaction_goes_on(
    ground: Ground, store: Store
) -> None:
    late = Order(new_spec(2, expires_at=now(store) + SECOND), run_at=now(store) + HOUR)
    with ground.caller() as accept:
        with pytest.raises(InvalidValue, match="expires_at"):
            accept([Order(new_spec(1)), *items([1]), late])
        accept([Order(new_spec(3))])
    assert list(ground.rows()) == ids(3)
    assert ground.inbox() == 0


def test_what_was_accepted_is_claimed(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept([Order(new_spec(1)), Order(new_spec(2, priority=6)), Order(new_spec(3), delay=60)])
        assert claimed(store, wanted()) == []
    assert claimed(store, wanted()) == ids(2, 1)
