"""Leases that have ended, and leases of one worker."""

from __future__ import annotations

from uuid import UUID

from leasebook.domain import change
from leasebook.domain.commands import Renew, TakeLease
from leasebook.domain.job import Policy
from leasebook.infra.ports import Store

from .making import HOUR, enqueue, ids, lease, new_spec, now, tell, write


def overdue(store: Store, limit: int = 100) -> list[UUID]:
    with store.transaction() as transaction:
        return [job.id for job in transaction.overdue(limit)]


def leased_by(store: Store, worker: str, limit: int = 100) -> list[UUID]:
    with store.transaction() as transaction:
        return [job.id for job in transaction.leased_by(worker, limit)]


def test_overdue_are_leased_jobs_whose_lease_has_ended(store: Store) -> None:
    ended, unknown, running, waiting = enqueue(
        store,
        new_spec(1),
        new_spec(2, name="unknown", queue="elsewhere"),
        new_spec(3, policy=Policy(timeout=4 * 3600)),
        new_spec(4),
    )
    assert overdue(store) == []
    lease(store, ended)
    lease(store, unknown)
    renewed = lease(store, running)
    tell(store, renewed, Renew(renewed.at, 2, renewed.at + 2 * HOUR))
    assert overdue(store) == [ended.id, unknown.id]
    with store.transaction() as transaction:
        [first] = transaction.overdue(1)
        assert first == transaction.load([first.id])[first.id]
        assert waiting.id not in [job.id for job in transaction.overdue(9)]


def test_overdue_come_in_order_of_id_and_the_oldest_within_the_limit(store: Store) -> None:
    jobs = enqueue(store, *(new_spec(number) for number in range(4)), ago=9 * HOUR)
    at = now(store)
    # The higher the id, the earlier the lease ended.
    leases = [change(job, TakeLease(at - n * HOUR, "w")) for n, job in enumerate(jobs, 1)]
    write(store, *leases)
    assert overdue(store) == ids(0, 1, 2, 3)
    assert overdue(store, 2) == ids(2, 3)


def test_overdue_leaves_out_what_another_holds(store: Store, other: Store) -> None:
    for job in enqueue(store, *(new_spec(number) for number in range(3))):
        lease(store, job)
    with store.transaction() as transaction:
        [held] = transaction.overdue(1)
        assert overdue(other) == [known for known in ids(0, 1, 2) if known != held.id]
    assert overdue(other) == ids(0, 1, 2)


def test_leased_by_one_worker_in_order_of_id(store: Store) -> None:
    jobs = enqueue(store, *(new_spec(number) for number in range(5)))
    for job in reversed(jobs):
        lease(store, job, "w1" if job is not jobs[2] else "w2")
    assert leased_by(store, "w1") == ids(0, 1, 3, 4)
    first, second = leased_by(store, "w1", 2)
    assert first < second
    assert leased_by(store, "w2") == ids(2)
    assert leased_by(store, "w") == []


def test_whether_a_worker_holds_anything_is_told_of_locked_rows_too(
    store: Store, other: Store
) -> None:
    [job] = enqueue(store, new_spec())

    def holds(worker: str) -> bool:
        with other.transaction() as transaction:
            return transaction.holds_leases(worker)

    assert not holds("w1")
    lease(store, job)
    with store.transaction() as transaction:
        assert transaction.leased_by("w1", 1)
        assert holds("w1")
    assert holds("w1")
    assert not holds("w2")


def test_what_others_have_locked_is_told_without_a_wait(store: Store, other: Store) -> None:
    for job in enqueue(store, *(new_spec(number) for number in range(3))):
        lease(store, job)
    with store.transaction() as transaction, other.transaction() as second:
        [held] = transaction.leased_by("w1", 1)
        known = ids(0, 1, 2, 77)
        assert second.locked(known) == {held.id}
        # The rest is locked for who has asked.
        assert transaction.locked(known) == set(known) - {held.id, known[-1]}


def test_leased_by_leaves_out_what_another_holds(store: Store, other: Store) -> None:
    for job in enqueue(store, *(new_spec(number) for number in range(3))):
        lease(store, job)
    with store.transaction() as transaction:
        [held] = transaction.leased_by("w1", 1)
        free = [known for known in ids(0, 1, 2) if known != held.id]
        assert leased_by(other, "w1") == free
        assert leased_by(other, "w1", 1)[0] in free
