"""A type that aborts, on both stores: it is what it was, and ends in bulk with its evidence."""

from __future__ import annotations

from collections import Counter

import pytest

from leasebook.domain.job import Job, Policy
from leasebook.domain.values import ExpiryCause, OnExpired, Outcome
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import Store
from leasebook.infra.worker.expiry import expire_all, sweep
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.settings import WorkerSettings

from .ground import Ground
from .making import enqueue, ids, items, lease, new_spec, worker

ABORTS = Policy(on_expired=OnExpired.ABORT)

pytestmark = pytest.mark.acceptance("P06")


def loaded(store: Store, number: int) -> Job:
    with store.transaction() as tx:
        return tx.load(ids(number))[ids(number)[0]]


def test_an_order_of_it_is_a_job_of_it(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept([Order(new_spec(1, policy=ABORTS)), Order(new_spec(2))])
    assert [loaded(store, n).spec.policy.on_expired for n in (1, 2)] == ["abort", "retry"]
    formats = {job_id: kept.row[1].format for job_id, kept in ground.rows().items()}
    assert formats == dict(zip(ids(1, 2), (2, 1), strict=True))


def test_an_item_of_it_joins_a_group_of_it(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept(items([1, 2], policy=ABORTS))
    with store.transaction() as tx:
        [key] = tx.collectable(10)
        assert [each.spec.policy for each in key.arrivals] == [ABORTS] * 2


def test_a_sweep_ends_them_with_their_evidence_and_others_go_on(
    ground: Ground, store: Store
) -> None:
    specs = [new_spec(n, policy=ABORTS if n % 2 else Policy()) for n in range(6)]
    for job in enqueue(store, *specs):
        lease(store, job, "dead")
    changes = sweep(store, 100)
    assert Counter(str(each.after.outcome) for each in changes) == {"aborted": 3, "None": 3}
    assert list(ground.rows()) == ids(0, 2, 4)
    assert [line for line in ground.audit() if line[0] == "job_aborted"] == [
        ("job_aborted", job_id, "dead") for job_id in ids(1, 3, 5)
    ]
    assert sweep(store, 100) == ()


def test_a_burial_ends_them_in_the_same_way(ground: Ground, store: Store) -> None:
    for each in ("dead", "w2"):
        store.enroll(worker(each))
    for job in enqueue(store, *(new_spec(n, policy=ABORTS) for n in range(3))):
        lease(store, job, "dead")
    changes = Heart(store, "w2", WorkerSettings()).bury("dead")
    assert {each.after.outcome for each in changes} == {Outcome.ABORTED}
    assert ground.rows() == {}
    assert Counter(line[0] for line in ground.audit())["job_aborted"] == 3


def test_one_whose_stream_has_moved_on_is_left_alone(ground: Ground, store: Store) -> None:
    [job] = enqueue(store, new_spec(1, policy=ABORTS))
    leased = lease(store, job)
    with store.transaction() as tx:
        assert len(expire_all(tx, [leased], ExpiryCause.WORKER_LOST)) == 1
    with store.transaction() as tx:
        assert expire_all(tx, [leased], ExpiryCause.WORKER_LOST) == ()
    assert Counter(line[0] for line in ground.audit())["job_aborted"] == 1


def test_the_next_of_its_key_goes_on(ground: Ground, store: Store) -> None:
    with ground.caller() as accept:
        accept([Order(new_spec(n, policy=ABORTS, ordering_key="k")) for n in (1, 2)])
    assert loaded(store, 2).blocked_by == ids(1)[0]
    leased = lease(store, loaded(store, 1))
    with store.transaction() as tx:
        [ended] = expire_all(tx, [leased], ExpiryCause.WORKER_LOST)
    assert ended.after.outcome is Outcome.ABORTED
    assert loaded(store, 2).blocked_by is None
