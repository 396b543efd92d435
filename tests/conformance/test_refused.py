"""What a store cannot hold is refused with the whole transaction, and nobody is harmed."""

from __future__ import annotations

import pytest

from leasebook.domain import change
from leasebook.domain.commands import Complete, Fail, TakeLease
from leasebook.domain.job import Job
from leasebook.domain.log import Change
from leasebook.infra.ports import DataRefused, Evidence, Store, StoreUnavailable, Transaction

from .ground import Ground
from .making import birth, complete, enqueue, ids, lease, new_spec, now, wanted, write


def start(job: Job) -> Change:
    """The change that leases a job."""
    return change(job, TakeLease(job.at, "w1"))


UNSTORABLE = {
    "NUL": "a\0b",
    "lone surrogate": "a\ud800b",
}
NO_DOCUMENT = {
    "no JSON": "{",
    "NaN": '{"x":NaN}',
    "infinity": "[Infinity]",
    "nothing": "",
    "raw NUL": '"\0"',
    "raw surrogate": '"\udfff"',
}


@pytest.mark.parametrize("result", NO_DOCUMENT.values(), ids=NO_DOCUMENT)
def test_a_result_that_is_no_document(ground: Ground, store: Store, result: str) -> None:
    first, second = enqueue(store, new_spec(1), new_spec(2))
    good, bad = lease(store, first), lease(store, second)
    assert bad.lease is not None
    refused = change(bad, Complete(bad.at, bad.lease.token, result))
    with pytest.raises(DataRefused) as caught, store.transaction() as transaction:
        transaction.append([complete(good), refused])
    assert "\0" not in caught.value.reason
    assert len(caught.value.reason) < 1_000
    with store.transaction() as transaction:
        assert transaction.load(ids(1, 2)) == {good.id: good, bad.id: bad}
    write(store, complete(good), complete(bad))


@pytest.mark.parametrize("text", UNSTORABLE.values(), ids=UNSTORABLE)
def test_a_worker_whose_name_cannot_be_stored(store: Store, text: str) -> None:
    [job] = enqueue(store, new_spec(1))
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.append([change(job, TakeLease(job.at, text))])


def test_an_error_text_with_a_lone_surrogate(store: Store) -> None:
    [job] = enqueue(store, new_spec(1))
    leased = lease(store, job)
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.append([change(leased, Fail(leased.at, 2, "a\ud800b"))])


@pytest.mark.parametrize("field", ["queue", "name", "label", "owner", "subject"])
@pytest.mark.parametrize("text", UNSTORABLE.values(), ids=UNSTORABLE)
def test_a_spec_that_cannot_be_stored(store: Store, field: str, text: str) -> None:
    at = now(store)
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.append([birth(new_spec(1, **{field: text}), at), birth(new_spec(2), at)])
    with store.transaction() as transaction:
        assert transaction.load(ids(1, 2)) == {}


@pytest.mark.parametrize("detail", NO_DOCUMENT.values(), ids=NO_DOCUMENT)
def test_evidence_that_is_no_document(ground: Ground, store: Store, detail: str) -> None:
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.record([Evidence("late_write_refused", detail)])
    assert ground.audit() == []


def test_the_store_goes_on_after_a_refusal(store: Store, other: Store) -> None:
    [job] = enqueue(store, new_spec(1))
    refused = birth(new_spec(2, queue="\0"), job.at)
    with pytest.raises(DataRefused), store.transaction() as transaction:
        transaction.append([*map(start, transaction.claim(wanted())), refused])
    for handle in (other, store):
        with handle.transaction() as transaction:
            assert [each.id for each in transaction.claim(wanted())] == ids(1)


@pytest.mark.parametrize("result", NO_DOCUMENT.values(), ids=NO_DOCUMENT)
def test_a_refusal_that_is_caught_inside_does_not_commit(
    ground: Ground, store: Store, result: str
) -> None:
    first, second = enqueue(store, new_spec(1), new_spec(2))
    leased = lease(store, first)
    refused = change(leased, Complete(leased.at, 2, result))
    with pytest.raises(StoreUnavailable), store.transaction() as transaction:
        append_twice(transaction, start(second), refused)
    assert [ground.rows()[known].row[1].state for known in ids(1, 2)] == ["leased", "queued"]


def append_twice(transaction: Transaction, good: Change, refused: Change) -> None:
    """Append what stands, then what is refused, and let the refusal pass."""
    assert not transaction.append([good])
    with pytest.raises(DataRefused):
        transaction.append([refused])


def test_an_error_text_with_nul_quotes_and_lines_is_stored_escaped(store: Store) -> None:
    [job] = enqueue(store, new_spec(1))
    leased = lease(store, job)
    failed = change(leased, Fail(leased.at, 2, 'nul \0, back\\slash, "quote",\nline, {brace}'))
    write(store, failed)
    with store.transaction() as transaction:
        assert transaction.stream(job.id)[-1].event == failed.events[-1]
