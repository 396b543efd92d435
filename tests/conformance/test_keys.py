"""Keys of jobs and of requests, in memory as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from leasebook.domain.commands import Fail
from leasebook.domain.errors import IdempotencyConflict, InvalidValue, UniqueKeyTaken
from leasebook.domain.job import Policy
from leasebook.domain.states import State
from leasebook.domain.values import OnConflict
from leasebook.infra.caller_ports import Order, Receipt
from leasebook.infra.ports import Store

from .ground import Blocked, Ground
from .making import (
    HOUR,
    SECOND,
    claimed,
    complete,
    ids,
    items,
    job_id,
    lease,
    new_spec,
    now,
    tell,
    undone,
    wanted,
    write,
)

REJECT, KEEP, REPLACE = OnConflict.REJECT, OnConflict.KEEP, OnConflict.REPLACE


def keyed(
    number: int, key: str = "k", on_conflict: OnConflict = REJECT, delay: float = 0.0, **fields: Any
) -> Order:
    """An order with a unique key; all have the same arguments unless told."""
    given = {"args": "{}", **fields}
    return Order(new_spec(number, unique_key=key, **given), None, delay, on_conflict)


def asked(number: int, request: str = "r", **fields: Any) -> Order:
    """An order with an idempotency key."""
    return Order(new_spec(number, **{"args": "{}", **fields}), idempotency_key=request)


def accept(ground: Ground, *orders: Order) -> Sequence[Receipt]:
    """Accept in a transaction of their own."""
    with ground.caller() as give:
        return give(orders)


def names(receipts: Sequence[Receipt]) -> list[tuple[UUID | None, bool]]:
    return [(each.id, each.created) for each in receipts]


def kinds(ground: Ground) -> list[str]:
    return [each.event.kind for each in ground.log()]


@pytest.mark.acceptance("P09")
def test_one_job_for_each_key(ground: Ground, store: Store) -> None:
    made = accept(ground, keyed(1), keyed(2, "other"), keyed(3, "k", queue="elsewhere"))
    assert names(made) == [(each, True) for each in ids(1, 2, 3)]
    with ground.caller() as give:
        with pytest.raises(UniqueKeyTaken) as taken:
            give([keyed(4)])
        assert (taken.value.job_id, taken.value.state) == (job_id(1), "queued")
        # The transaction is whole and takes more.
        assert names(give([keyed(5, on_conflict=KEEP)])) == [(job_id(1), False)]
        give([keyed(6, "third")])
    assert sorted(ground.rows()) == ids(1, 2, 3, 6)
    assert ground.rows()[job_id(1)].row[0].unique_key == "k"


@pytest.mark.acceptance("P09")
def test_the_key_is_free_when_its_job_has_ended_and_not_before(
    ground: Ground, store: Store
) -> None:
    accept(ground, keyed(1, policy=Policy(retries=1)))
    [job] = _jobs(store, 1)
    leased = lease(store, job)
    _refused(ground, job.id, "leased", held=False)
    retrying = tell(store, leased, Fail(leased.at, 2, "no", 1.0))
    _refused(ground, job.id, "retry-wait", held=False)
    leased = lease(store, retrying)
    assert leased.lease is not None
    held = tell(store, leased, Fail(leased.at, leased.lease.token, "no"))
    assert held.held
    _refused(ground, job.id, "failed", held=True)
    accept(ground, keyed(2, "other"))
    write(store, complete(lease(store, _jobs(store, 2)[0])))
    assert names(accept(ground, keyed(3, "other"))) == [(job_id(3), True)]


def _jobs(store: Store, *numbers: int) -> list[Any]:
    with store.transaction() as transaction:
        loaded = transaction.load(ids(*numbers))
    return [loaded[each] for each in ids(*numbers)]


def _refused(ground: Ground, holder: UUID, state: str, *, held: bool) -> None:
    with ground.caller() as give, pytest.raises(UniqueKeyTaken) as taken:
        give([keyed(99)])
    error = taken.value
    assert (error.job_id, error.state, error.held) == (holder, state, held)


@pytest.mark.acceptance("P09")
def test_replace_moves_the_one_that_waits(ground: Ground, store: Store) -> None:
    accept(ground, keyed(1, delay=3600))
    before = _jobs(store, 1)[0]
    moved = accept(ground, keyed(2, on_conflict=REPLACE, delay=60))
    assert names(moved) == [(job_id(1), False)]
    after = _jobs(store, 1)[0]
    assert (after.spec, after.state, after.version) == (before.spec, State.QUEUED, 2)
    assert after.due_at - after.at == 60 * SECOND
    assert claimed(store, wanted()) == []
    accept(ground, keyed(3, on_conflict=REPLACE))
    assert claimed(store, wanted()) == ids(1)
    assert kinds(ground) == ["enqueued", "rescheduled", "rescheduled"]
    lease(store, _jobs(store, 1)[0])
    _refused_replace(ground, args="{}")


def test_replace_refuses_what_it_could_not_keep(ground: Ground, store: Store) -> None:
    accept(ground, keyed(1, expires_at=now(store) + HOUR))
    _refused_replace(ground, args='{"n":2}')
    with ground.caller() as give, pytest.raises(InvalidValue, match="expires"):
        give([keyed(9, on_conflict=REPLACE, delay=4000)])
    # The members of an object have no order.
    accept(ground, keyed(2, "o", args='{"a":1,"b":{"c":[1,2],"d":2}}'))
    again = keyed(3, "o", on_conflict=REPLACE, delay=5, args='{"b":{"d":2,"c":[1,2]},"a":1}')
    assert names(accept(ground, again)) == [(job_id(2), False)]


def _refused_replace(ground: Ground, args: str) -> None:
    with ground.caller() as give, pytest.raises(UniqueKeyTaken):
        give([keyed(99, on_conflict=REPLACE, args=args)])


def test_a_batch_is_taken_whole_or_not_at_all(ground: Ground) -> None:
    accept(ground, keyed(1, "b"))
    with ground.caller() as give:
        with pytest.raises(UniqueKeyTaken) as taken:
            give([Order(new_spec(2)), keyed(3, "a"), keyed(4, "b"), *items([1]), asked(5)])
        assert taken.value.job_id == job_id(1)
        # Nothing of it is there, and nothing keeps it from coming again.
        give([keyed(3, "a"), asked(5)])
    assert sorted(ground.rows()) == ids(1, 3, 5)
    assert ground.inbox() == 0


def test_a_batch_meets_itself(ground: Ground, store: Store) -> None:
    made = accept(
        ground,
        keyed(1, "a"),
        keyed(2, "a", KEEP),
        keyed(3, "b", KEEP),
        Order(new_spec(4)),
        keyed(5, "a", REPLACE, 30),
        keyed(6, "a", REPLACE, 60),
        *items([1]),
        keyed(7, "b", KEEP),
    )
    expected = [(1, True), (1, False), (3, True), (4, True), (1, False), (1, False), (3, False)]
    assert names([*made[:6], made[7]]) == [(job_id(number), new) for number, new in expected]
    job = _jobs(store, 1)[0]
    assert (job.version, job.due_at - job.at) == (2, 60 * SECOND)
    with ground.caller() as give, pytest.raises(UniqueKeyTaken) as taken:
        give([keyed(8, "c"), keyed(9, "c")])
    assert taken.value.job_id == job_id(8)


@pytest.mark.case("C31")
def test_a_batch_of_leases_has_one_job_of_a_key_and_all_without(
    ground: Ground, store: Store
) -> None:
    accept(ground, keyed(1, "a"), keyed(2, "a", KEEP), Order(new_spec(3)), Order(new_spec(4)))
    assert sorted(claimed(store, wanted(limit=10))) == ids(1, 3, 4)


@pytest.mark.case("C38")
def test_no_transition_meets_a_key(ground: Ground, store: Store) -> None:
    """While A waits for its retry B is merged into it; nobody else is held up, and all goes on."""
    accept(ground, keyed(1), Order(new_spec(3)))
    first = lease(store, _jobs(store, 1)[0])
    failed = tell(store, first, Fail(first.at, 2, "no", 0.0))
    assert names(accept(ground, keyed(2, on_conflict=KEEP))) == [(job_id(1), False)]
    write(store, complete(lease(store, _jobs(store, 3)[0])))
    write(store, complete(lease(store, failed)))
    assert ground.rows() == {}
    assert names(accept(ground, keyed(2))) == [(job_id(2), True)]


@pytest.mark.case("C37")
@pytest.mark.parametrize("on_conflict", list(OnConflict))
def test_the_second_waits_and_comes_when_the_first_rolls_back(
    ground: Ground, on_conflict: OnConflict
) -> None:
    with undone(ground.caller()) as give:
        give([keyed(1)])
        blocked = Blocked(ground, lambda: accept(ground, keyed(2, "k", on_conflict, 60)))
    assert names(blocked.answer()) == [(job_id(2), True)]
    assert list(ground.rows()) == ids(2)


@pytest.mark.case("C37")
def test_the_second_waits_and_meets_the_first_when_that_commits(ground: Ground) -> None:
    with ground.caller() as give:
        give([keyed(1)])
        blocked = Blocked(ground, lambda: accept(ground, keyed(2, "k", KEEP)))
    assert names(blocked.answer()) == [(job_id(1), False)]
    with ground.caller() as give:
        give([keyed(3, "l")])
        late = Blocked(ground, lambda: accept(ground, keyed(4, "l")))
    with pytest.raises(UniqueKeyTaken) as taken:
        late.answer()
    assert taken.value.job_id == job_id(3)


def test_two_who_move_one_job_come_one_after_the_other(ground: Ground, store: Store) -> None:
    accept(ground, keyed(1, delay=10))
    with ground.caller() as give:
        give([keyed(2, "k", REPLACE, 100)])
        blocked = Blocked(ground, lambda: accept(ground, keyed(3, "k", REPLACE, 200)))
    assert names(blocked.answer()) == [(job_id(1), False)]
    job = _jobs(store, 1)[0]
    assert (job.version, job.due_at - job.at) == (3, 200 * SECOND)


@pytest.mark.acceptance("Q25")
def test_a_request_is_one_job_for_good(ground: Ground, store: Store) -> None:
    assert names(accept(ground, asked(1))) == [(job_id(1), True)]
    assert names(accept(ground, asked(2), asked(3, "s"))) == [(job_id(1), False), (job_id(3), True)]
    write(store, complete(lease(store, _jobs(store, 1)[0])))
    assert names(accept(ground, asked(4))) == [(job_id(1), False)]
    assert sorted(ground.rows()) == ids(3)


@pytest.mark.acceptance("Q25")
@pytest.mark.parametrize("other", [{"args": '{"n":2}'}, {"name": "fold"}])
def test_another_request_with_its_key_is_an_error(ground: Ground, other: dict[str, str]) -> None:
    accept(ground, asked(1))
    with ground.caller() as give:
        with pytest.raises(IdempotencyConflict) as refused:
            give([asked(2, **other)])
        assert refused.value.job_id == job_id(1)
        give([asked(3, "t", **other)])
    assert sorted(ground.rows()) == ids(1, 3)


@pytest.mark.acceptance("Q25")
def test_requests_of_one_batch(ground: Ground) -> None:
    accept(ground, asked(1, "old"))
    made = accept(ground, asked(2), asked(3), asked(4, "old"), asked(5, "s"), Order(new_spec(6)))
    expected = [(2, True), (2, False), (1, False), (5, True), (6, True)]
    assert names(made) == [(job_id(number), new) for number, new in expected]
    with ground.caller() as give, pytest.raises(IdempotencyConflict):
        give([asked(7, "u"), asked(8, "u", args="[]")])
    assert names(accept(ground, asked(7, "u"))) == [(job_id(7), True)]


@pytest.mark.acceptance("Q25")
@pytest.mark.parametrize("commit", [True, False])
def test_the_same_request_at_the_same_time(ground: Ground, commit: bool) -> None:
    first = ground.caller() if commit else undone(ground.caller())
    with first as give:
        give([asked(1)])
        blocked = Blocked(ground, lambda: accept(ground, asked(2)))
    assert names(blocked.answer()) == [(job_id(1), False) if commit else (job_id(2), True)]
    assert len(ground.rows()) == 1


def test_a_request_that_was_refused_or_undone_is_a_new_one(ground: Ground) -> None:
    accept(ground, keyed(1))
    both = Order(new_spec(2, args="{}", unique_key="k"), idempotency_key="r")
    with ground.caller() as give, pytest.raises(UniqueKeyTaken):
        give([both])
    with undone(ground.caller()) as give:
        give([asked(3)])
    assert names(accept(ground, asked(4))) == [(job_id(4), True)]


def test_a_request_keeps_the_job_that_stood_for_it(ground: Ground, store: Store) -> None:
    accept(ground, keyed(1))
    both = Order(new_spec(2, args="{}", unique_key="k"), None, 0.0, KEEP, "r")
    twin = Order(new_spec(3, args="{}", unique_key="k"), None, 0.0, KEEP, "r")
    assert names(accept(ground, both, twin)) == [(job_id(1), False)] * 2
    write(store, complete(lease(store, _jobs(store, 1)[0])))
    assert names(accept(ground, twin)) == [(job_id(1), False)]
    assert ground.rows() == {}
