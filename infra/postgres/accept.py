"""Accepting orders, apart from who carries the statements: a generator of questions.

It yields (statement, parameters) and is sent the rows; synchronous and asynchronous drivers run
the same code.  Nothing here waits or knows a connection.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from attrs import evolve as replace

from ...domain.commands import Enqueue
from ...domain.decide import decide
from ...domain.events import Enqueued
from ..codec import KINDS, encode_spec
from ..ports import Order, Receipt
from .rows import numbers, texts, times, uuids
from .schema.name import Schema
from .statements import enqueue

Row: TypeAlias = Sequence[Any]
Question: TypeAlias = tuple[str, dict[str, object]]
Accepting: TypeAlias = Generator[Question, Sequence[Row], tuple[Receipt, ...]]

#: What one statement carries at most.
ROWS_MAX = 10_000
BYTES_MAX = 16 * 1024 * 1024

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def accepting(schema: Schema, orders: Sequence[Order]) -> Accepting:
    """Accept orders in the transaction that answers: all of them or, with an error, none.

    Returns the receipts in the order of the orders.  Raises InvalidValue, as the domain does, for
    a job that would expire before it starts.
    """
    singles = [place for place, each in enumerate(orders) if each.spec.group is None]
    items = [place for place, each in enumerate(orders) if each.spec.group is not None]
    parts = [*_parts(orders, singles), *_parts(orders, items)]
    receipts: dict[int, Receipt] = {}
    if len(parts) > 1:
        # A refusal of a later part must take the earlier ones back, whatever the caller does next.
        yield "savepoint leasebook_enqueue", {}
    try:
        for part in parts:
            chosen = [orders[place] for place in part]
            single = chosen[0].spec.group is None
            got = yield from (_jobs if single else _items)(schema, chosen)
            receipts.update(zip(part, got, strict=True))
    except _Refused as refused:
        if len(parts) > 1:
            yield "rollback to savepoint leasebook_enqueue", {}
        raise refused.why from None
    if len(parts) > 1:
        yield "release savepoint leasebook_enqueue", {}
    return tuple(receipts[place] for place in range(len(orders)))


class _Refused(Exception):
    """The domain said no after the statement had written nothing."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self.why = why


def _parts(orders: Sequence[Order], places: Sequence[int]) -> Iterator[list[int]]:
    """The places cut into parts that a statement can carry."""
    part: list[int] = []
    size = 0
    for place in places:
        # Most characters are one byte in UTF-8, and the bound is no sharp one.
        grown = len(orders[place].spec.args) + 400
        if part and (len(part) >= ROWS_MAX or size + grown > BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(place)
        size += grown
    if part:
        yield part


def _jobs(schema: Schema, orders: Sequence[Order]) -> Generator[Question, Sequence[Row], Any]:
    parameters: dict[str, object] = {
        "ids": uuids([each.spec.id for each in orders]),
        "run_ats": times([each.run_at for each in orders]),
        "delays": numbers([timedelta(seconds=each.delay) // MICROSECOND for each in orders]),
        "data": texts([encode_spec(each.spec) for each in orders]),
        "kind": KINDS[Enqueued.kind],
    }
    rows = yield enqueue.accept_jobs(schema), parameters
    refused, moment, xid = rows[0]
    if refused:
        _explain(orders, EPOCH + moment * MICROSECOND)
    return [Receipt(each.spec.id, None, xid) for each in orders]


def _items(schema: Schema, orders: Sequence[Order]) -> Generator[Question, Sequence[Row], Any]:
    parameters: dict[str, object] = {
        "items": texts([each.spec.args for each in orders]),
        # The argument of a grouped job is its items, which come beside the spec.
        "specs": texts([encode_spec(replace(each.spec, args="null")) for each in orders]),
    }
    rows = yield enqueue.accept_items(schema), parameters
    ids, xid = rows[0]
    return [Receipt(None, number, xid) for number in ids]


def birth(order: Order, at: datetime) -> Enqueue:
    """The command that the domain is asked for an order accepted at ``at``."""
    earliest = at + timedelta(seconds=order.delay)
    run_at = earliest if order.run_at is None else max(earliest, order.run_at)
    return Enqueue(at, replace(order.spec, enqueued_at=at), run_at)


def _explain(orders: Sequence[Order], at: datetime) -> None:
    """Let the domain say which order it refuses, and why."""
    for order in orders:
        try:
            decide(None, birth(order, at))
        except Exception as error:
            raise _Refused(error) from None
    raise AssertionError("the statement refused what the domain accepts")
