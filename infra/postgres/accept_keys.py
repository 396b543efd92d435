"""Unique and ordering keys: who meets a holder, and who is born behind whom.

An order whose unique key is free is born, one whose key is taken meets the holder.

A key can be given up while its holder is looked for, and be taken again before the next insert.  So
all is undone and tried again until each order has its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from attrs import field, frozen

from ...domain.decide.keys import meet
from ...domain.errors import InvalidValue, LeasebookError
from ...domain.job import Job
from ...domain.log import Change
from ...domain.ordering import line_up
from ...domain.values import OnConflict
from ..caller_ports import Order, Receipt
from ..documents import canonical
from .accept_parts import Asking, Refused, birth, chunks, explain, job_columns, parts
from .holders import EPOCH, holder_of, holders_of, moment_of, moves
from .schema.name import Schema
from .statements import keys

#: Each round needs somebody else to have ended a job and begun the next one meanwhile.
ROUNDS_MAX = 100

Key: TypeAlias = tuple[str, str]


class KeyBusy(LeasebookError):
    """A unique key was given up and taken again by others, time after time, as we asked for it."""

    code = "key_busy"

    def __init__(self, queue: str, key: str) -> None:
        super().__init__(
            f"cannot enqueue with unique key {key[:60]!r} on queue {queue[:60]!r}: others took it "
            f"{ROUNDS_MAX} times in a row. Try again."
        )
        self.queue = queue
        self.key = key


def is_keyed(order: Order) -> bool:
    """Whether the order has a key that others may have too."""
    return order.spec.unique_key is not None or (
        order.spec.ordering_key is not None and order.spec.group is None
    )


def accept_keyed(
    schema: Schema, orders: Sequence[Order], places: Iterable[int]
) -> Asking[dict[int, Receipt]]:
    """Accept the orders at ``places``, all with unique or ordering keys.

    Raises Refused with UniqueKeyTaken where the holder cannot stand for the order.
    """
    wanted = sorted(places)
    keyed = _Keyed(schema, orders)
    if len(list(parts(orders, wanted))) > 1:
        # One statement numbers in the order of the call and inserts in that of the unique keys.
        # Of several the first must not wait for a key that is before one of a later statement.
        keyed.check_several(wanted)
        wanted = sorted(wanted, key=keyed.turn)
    if len(wanted) > 1:
        yield "savepoint leasebook_keys", {}
    gone: Sequence[int] = wanted
    for _ in range(ROUNDS_MAX):
        gone = yield from keyed.attempt(wanted)
        if not gone:
            break
        if len(wanted) > 1:
            # Who begins again must hold nothing: those who come in the order of keys wait for it.
            yield "rollback to savepoint leasebook_keys", {}
    if len(wanted) > 1:
        yield "release savepoint leasebook_keys", {}
    if gone:
        raise Refused(KeyBusy(*keyed.key(gone[0])))
    return keyed.receipts


@frozen
class _Keyed:
    """The orders of one call by place, and the receipts that they have got."""

    schema: Schema
    orders: Sequence[Order]
    receipts: dict[int, Receipt] = field(factory=dict[int, Receipt])
    xids: dict[int, int] = field(factory=dict[int, int])

    def key(self, place: int) -> Key:
        """Queue and unique key."""
        spec = self.orders[place].spec
        return spec.queue, spec.unique_key or ""

    def check_several(self, places: Iterable[int]) -> None:
        """Refuse what would be numbered in another order than it is given in."""
        for spec in (self.orders[place].spec for place in places):
            if spec.unique_key is not None and spec.ordering_key is not None:
                seen = "so many jobs, of which some have an ordering key and a unique key,"
                remedy = "enqueue them in smaller parts, which keeps their order"
                raise Refused(InvalidValue("ordering_key", seen, remedy))

    def turn(self, place: int) -> tuple[bool, bytes, bytes, int]:
        """The order in which everybody inserts: bytewise by key, as the collation "C" compares.

        Those without a unique key wait for nobody, and come first, as they were given.
        """
        if self.orders[place].spec.unique_key is None:
            return False, b"", b"", place
        queue, key = self.key(place)
        return True, queue.encode(), key.encode(), place

    def attempt(self, places: Sequence[int]) -> Asking[Sequence[int]]:
        """Answer all orders; when holders have gone meanwhile, their places are returned.

        Rows are waited for last, so that who waits in the index of keys has locked none.
        """
        self.receipts.clear()
        moving: list[int] = []
        unseen: list[int] = []
        for part in parts(self.orders, places):
            holders = yield from self._insert(part)
            for place in part:
                if place in self.receipts:
                    continue
                if self._moves(place):
                    moving.append(place)
                elif place in holders:
                    self._meet(holders[place], place, EPOCH)
                else:
                    unseen.append(place)
        gone = yield from self._look(unseen)
        return gone or (yield from self._move(moving))

    def _insert(self, part: Sequence[int]) -> Asking[dict[int, Job]]:
        """Let the orders be born whose keys are free; holders that were seen, by place."""
        chosen = [self.orders[place] for place in part]
        behind = line_up([each.spec for each in chosen])
        asked = job_columns(chosen, behind) | {"schema": self.schema.name}
        rows = yield keys.accept_keyed(self.schema), asked
        refused, moment, xid, born, held = rows[0]
        if refused:
            explain(chosen, moment_of(moment))
        self.xids.update((place, xid) for place in part)
        numbers: Sequence[int] = born or ()
        for number in numbers:
            place = part[number - 1]
            self.receipts[place] = Receipt(self.orders[place].spec.id, None, xid)
        return {part[number - 1]: holder for number, holder in holders_of(held).items()}

    def _look(self, places: Sequence[int]) -> Asking[Sequence[int]]:
        """Meet holders that have come while we waited; the places of those that have gone."""
        holders: dict[Key, Job] = {}
        for some in chunks(places):
            rows = yield keys.holders(self.schema), self._asked(some)
            holders.update(_by_key(json.loads(text) for (text,) in rows))
        for place in sorted(places):
            if (holder := holders.get(self.key(place))) is not None:
                self._meet(holder, place, EPOCH)
        return [place for place in places if self.key(place) not in holders]

    def _move(self, places: Sequence[int]) -> Asking[Sequence[int]]:
        """Move the holders to the orders' times; the places of those that have gone."""
        if not places:
            return ()
        rows = yield keys.lock_holders(self.schema), self._asked(places)
        holders = _by_key(json.loads(text) for text, _ in rows)
        at = max((moment_of(moment) for _, moment in rows), default=EPOCH)
        gone = [place for place in places if self.key(place) not in holders]
        if gone:
            return gone
        changes: dict[UUID, Change | None] = {}
        for place in sorted(places):
            holder = holders[self.key(place)]
            # Of several orders for one job the last one says when.
            changes[holder.id] = self._meet(holder, place, at)
        made = sorted((each for each in changes.values() if each), key=lambda each: each.after.id)
        if made:
            ((moved,),) = yield keys.reschedule(self.schema), moves(made)
            assert moved == len(made), "the rows are locked"
        return ()

    def _meet(self, holder: Job, place: int, at: datetime) -> Change | None:
        order = self.orders[place]
        same = self._moves(place) and canonical(holder.spec.args) == canonical(order.spec.args)
        try:
            change = meet(holder, birth(order, at), order.on_conflict, same)
        except LeasebookError as error:
            raise Refused(error) from None
        self.receipts[place] = Receipt(holder.id, None, self.xids[place], created=False)
        return change

    def _moves(self, place: int) -> bool:
        """Whether the order wants the holder moved."""
        return self.orders[place].on_conflict is OnConflict.REPLACE

    def _asked(self, places: Sequence[int]) -> dict[str, object]:
        """Each key once."""
        wanted = list(dict.fromkeys(self.key(place) for place in places))
        return {"queues": [queue for queue, _ in wanted], "keys": [key for _, key in wanted]}


def _by_key(documents: Iterable[dict[str, Any]]) -> dict[Key, Job]:
    holders = (holder_of(each) for each in documents)
    return {(each.spec.queue, each.spec.unique_key or ""): each for each in holders}
