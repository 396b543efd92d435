"""Idempotency keys: the first request of a key names the job of all later ones, for good."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from attrs import field, frozen

from ...domain.errors import IdempotencyConflict
from ..caller_ports import Order, Receipt
from ..documents import digest
from .accept_parts import Asking, Refused, chunks
from .schema.name import Schema
from .statements import keys


@frozen
class Known:
    """What became of the idempotency keys of a call.

    ``receipts`` answers the places whose request is an old one; ``first`` has, for each new key,
    the place that the job is made for, and ``twins`` the places that ask for the same.
    """

    orders: Sequence[Order]
    receipts: dict[int, Receipt] = field(factory=dict[int, Receipt])
    first: dict[str, int] = field(factory=dict[str, int])
    twins: dict[int, int] = field(factory=dict[int, int])

    def is_new(self, place: int) -> bool:
        """Whether this place has a job to be made for it."""
        return place not in self.receipts and place not in self.twins


def recall(schema: Schema, orders: Sequence[Order]) -> Asking[Known]:
    """Claim the new idempotency keys, and find the jobs of the old ones.

    Raises Refused with IdempotencyConflict for a key that was given with another request.
    """
    known = Known(orders)
    digests: dict[int, str] = {}
    wanted: dict[str, int] = {}
    for place, order in enumerate(orders):
        if order.idempotency_key is not None:
            digests[place] = digest(order.spec)
            wanted.setdefault(order.idempotency_key, place)
    old: dict[str, tuple[UUID, str]] = {}
    xid = 0
    for some in chunks(sorted(wanted)):
        given = [orders[wanted[key]] for key in some]
        ids = [str(each.spec.id) for each in given]
        asked: dict[str, object] = {
            "keys": some,
            "ids": ids,
            "digests": [digests[wanted[key]] for key in some],
        }
        rows = yield keys.remember(schema), asked
        told, xid = rows[0]
        new: Sequence[str] = told or ()
        known.first.update((key, wanted[key]) for key in new)
        if taken := [key for key in some if key not in known.first]:
            found = yield keys.recall(schema), {"keys": taken}
            old.update((key, (UUID(job_id), stored)) for key, job_id, stored in found)
    for place, asked_for in digests.items():
        _answer(known, place, asked_for, old, digests, xid)
    return known


def _answer(
    known: Known,
    place: int,
    asked_for: str,
    old: dict[str, tuple[UUID, str]],
    digests: dict[int, str],
    xid: int,
) -> None:
    """Say what a place with an idempotency key is: a new request, its twin, or an old one."""
    key = known.orders[place].idempotency_key
    assert key is not None
    first = known.first.get(key)
    if first == place:
        return
    if first is None:
        job_id, stored = old[key]
        known.receipts[place] = Receipt(job_id, None, xid, created=False)
    else:
        job_id, stored = known.orders[first].spec.id, digests[first]
        known.twins[place] = first
    if stored != asked_for:
        raise Refused(IdempotencyConflict(key, job_id))


def adopt(schema: Schema, known: Known) -> Asking[None]:
    """Let new requests belong to the jobs that stand for them, and answer their twins."""
    other = {
        key: str(known.receipts[place].id)
        for key, place in known.first.items()
        if not known.receipts[place].created
    }
    for some in chunks(sorted(other)):
        yield keys.adopt(schema), {"keys": some, "ids": [other[key] for key in some]}
    for place, first in known.twins.items():
        made = known.receipts[first]
        known.receipts[place] = Receipt(made.id, None, made.xid, created=False)
