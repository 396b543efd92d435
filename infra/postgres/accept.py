"""Accepting orders, apart from who carries the statements: a generator of questions.

It yields (statement, parameters) and is sent the rows; synchronous and asynchronous drivers run
the same code.  Nothing here waits or knows a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import TypeAlias, TypeVar
from uuid import UUID

from ...domain.ordering import check_keys, unknown_parent
from ...projections.row import format_of_spec
from ..caller_ports import Alike, Order, Receipt
from ..documents import encode_head, with_args
from .accept_keys import accept_keyed, is_keyed
from .accept_parts import Asking as Asking
from .accept_parts import Question as Question
from .accept_parts import (
    Refused,
    alike_columns,
    args_of,
    as_alike,
    chunks,
    explain,
    job_columns,
    parts,
)
from .accept_parts import Row as Row
from .accept_requests import adopt, recall
from .connection import text_of
from .holders import moment_of
from .rows import numbers, texts, uuids
from .schema.name import Schema
from .statements import enqueue, keys, order

Accepting: TypeAlias = Asking[tuple[Receipt, ...]]
T = TypeVar("T")

#: How it begins, is taken back, and ends.
Guard: TypeAlias = tuple[str, str, str]
TRANSACTION: Guard = ("begin", "rollback", "commit")
SAVEPOINT: Guard = (
    "savepoint leasebook_enqueue",
    "rollback to savepoint leasebook_enqueue",
    "release savepoint leasebook_enqueue",
)


def accepting(schema: Schema, orders: Sequence[Order], *, alone: bool = False) -> Accepting:
    """Accept orders in the transaction that answers: all of them or, with an error, none.

    ``alone``: no transaction is open, and what is not one statement begins and ends one.  Returns
    the receipts in the order of the orders.  Raises InvalidValue, as the domain does, for a job
    that would expire before it starts, UniqueKeyTaken and IdempotencyConflict for keys that others
    have.
    """
    kinds = _kinds(orders)
    check_keys([order.spec for order in kinds])
    if len(kinds) == 1 and _is_plain(kinds[0]):
        goes = _goes(orders)
        accept, guarded = _plain(schema, goes), len(goes) > 1
        single = not guarded and kinds[0].spec.after is None
    else:
        orders = list(orders)
        accept, guarded = _several(schema, orders), _writes_before_a_refusal(orders)
        single = False
    questions = _after_parents(schema, kinds, accept)
    if alone and not single:
        questions = _within(questions, TRANSACTION, BaseException)
    elif guarded and not alone:
        # A refusal of a later part must take the earlier ones back, whatever the caller does next.
        questions = _within(questions, SAVEPOINT, Refused)
    try:
        receipts = yield from questions
    except Refused as refused:
        raise refused.why from None
    return tuple(receipts)


def _within(questions: Asking[T], guard: Guard, undone_by: type[BaseException]) -> Asking[T]:
    """Ask between the first and the last statement of a guard, or take back what was written."""
    begin, undo, end = guard
    try:
        yield begin, {}
        answer = yield from questions
        yield end, {}
    except undone_by as error:
        if not isinstance(error, GeneratorExit):  # Nobody would ask any more.
            with suppress(Exception):  # What was wrong first is what there is to tell.
                yield undo, {}
        raise
    return answer


def _after_parents(
    schema: Schema, kinds: Sequence[Order], accept: Asking[list[Receipt]]
) -> Asking[list[Receipt]]:
    yield from _check_parents(schema, kinds)
    return (yield from accept)


def _kinds(orders: Sequence[Order]) -> Sequence[Order]:
    """The orders, but of those that are alike their pattern."""
    return (orders.pattern,) if isinstance(orders, Alike) else orders


def _is_plain(order: Order) -> bool:
    """Whether nothing that was there before can answer for the order."""
    return not is_keyed(order) and order.idempotency_key is None


def _goes(orders: Sequence[Order]) -> Sequence[Sequence[Order]]:
    """One order, or those that are alike, in parts that a statement can carry."""
    if len(orders) == 1:
        return (orders,)
    return [orders[part[0] : part[-1] + 1] for part in parts(orders, range(len(orders)))]


def _plain(schema: Schema, goes: Iterable[Sequence[Order]]) -> Asking[list[Receipt]]:
    receipts: list[Receipt] = []
    for each in goes:
        receipts += yield from _written(schema, each)
    return receipts


def _written(schema: Schema, orders: Sequence[Order]) -> Asking[list[Receipt]]:
    """Single jobs or items, whichever the first is, by one statement."""
    first = _kinds(orders)[0]
    return (yield from (_jobs if first.spec.group is None else _items)(schema, orders))


def _several(schema: Schema, orders: Sequence[Order]) -> Asking[list[Receipt]]:
    """Requests first, in order of their keys, then unique keys in theirs: everybody alike."""
    known = yield from recall(schema, orders)
    receipts = known.receipts
    wanted = [place for place in range(len(orders)) if known.is_new(place)]
    keyed = [place for place in wanted if is_keyed(orders[place])]
    plain = [place for place in wanted if not is_keyed(orders[place])]
    for part in _plain_parts(orders, plain):
        got = yield from _written(schema, [orders[place] for place in part])
        receipts.update(zip(part, got, strict=True))
    if keyed:
        receipts.update((yield from accept_keyed(schema, orders, keyed)))
    yield from adopt(schema, known)
    return [receipts[place] for place in range(len(orders))]


def _check_parents(schema: Schema, orders: Sequence[Order]) -> Asking[None]:
    """A job that comes after one that is not there would wait for ever."""
    parents = sorted({each.spec.after for each in orders if each.spec.after is not None})
    for some in chunks(parents):
        missing = yield order.missing(schema), {"ids": uuids(some)}
        if missing:
            raise Refused(unknown_parent(missing[0][0]))


def _writes_before_a_refusal(orders: Sequence[Order]) -> bool:
    """Whether something may be written before a refusal."""
    if len(orders) == 1:
        return is_keyed(orders[0]) and orders[0].idempotency_key is not None
    if any(not _is_plain(each) for each in orders):
        return True
    return len(_plain_parts(orders, range(len(orders)))) > 1


def _plain_parts(orders: Sequence[Order], places: Sequence[int]) -> list[list[int]]:
    """Single jobs, then items, in parts that a statement can carry."""
    singles = [place for place in places if orders[place].spec.group is None]
    items = [place for place in places if orders[place].spec.group is not None]
    return [*parts(orders, singles), *parts(orders, items)]


def _jobs(schema: Schema, orders: Sequence[Order]) -> Asking[list[Receipt]]:
    alike = as_alike(orders)
    if alike is None:
        # Each brings a document of its own, as those with keys do; these have nobody to meet.
        asked = job_columns(orders) | {"schema": schema.name}
        rows = yield keys.accept_keyed(schema), asked
        ids: Sequence[UUID] = [each.spec.id for each in orders]
    else:
        rows = yield text_of(enqueue.accept_jobs, schema), alike_columns(alike)
        ids = alike.ids
    refused, moment, xid, *_ = rows[0]
    if refused:
        explain(orders, moment_of(moment))
    return list(map(Receipt, ids, repeat(None), repeat(xid)))


def _items(schema: Schema, orders: Sequence[Order]) -> Asking[list[Receipt]]:
    if isinstance(orders, Alike):
        known = [(orders.pattern.spec, orders.head)] * len(orders)
    else:
        known = [(each.spec, encode_head(each.spec)) for each in orders]
    parameters: dict[str, object] = {
        "schema": schema.name,
        "formats": numbers([format_of_spec(spec) for spec, _ in known]),
        "items": texts(args_of(orders)),
        # The argument of a grouped job is its items, which come beside the spec.
        "specs": texts([with_args(head, "null") for _, head in known]),
    }
    rows = yield text_of(enqueue.accept_items, schema), parameters
    ids, xid = rows[0]
    return [Receipt(None, number, xid) for number in ids]
