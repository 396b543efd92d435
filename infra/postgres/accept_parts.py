"""What all ways of accepting orders have in common."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve as replace

from ...domain.commands import Enqueue
from ...domain.decide import decide
from ...domain.events import Enqueued
from ...domain.values import Json
from ...projections.row import format_of_spec
from ..caller_ports import Alike, Order
from ..codec import KINDS
from ..documents import encode_head, encode_spec
from .rows import moment, numbers, texts, times, uuids

Row: TypeAlias = Sequence[Any]
Question: TypeAlias = tuple[str, dict[str, object]]
T = TypeVar("T")
Asking: TypeAlias = Generator[Question, Sequence[Row], T]

#: What one statement carries at most.
ROWS_MAX = 10_000
BYTES_MAX = 16 * 1024 * 1024
#: What a job takes beside its arguments, roughly.
ROW_BYTES = 400

MICROSECOND = timedelta(microseconds=1)


class Refused(Exception):
    """The domain said no; what this call has written so far must be taken back."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self.why = why


def args_of(orders: Sequence[Order]) -> Sequence[Json]:
    """The arguments of each."""
    return orders.args if isinstance(orders, Alike) else [each.spec.args for each in orders]


def parts(orders: Sequence[Order], places: Sequence[int]) -> Iterator[list[int]]:
    """The places cut into parts that a statement can carry."""
    args = args_of(orders)
    for part in chunks(places):
        # Most characters are one byte in UTF-8, and the bound is no sharp one.
        sizes = [len(args[place]) + ROW_BYTES for place in part]
        if sum(sizes) <= BYTES_MAX:
            yield part
            continue
        begin, size = 0, 0
        for end, grown in enumerate(sizes):
            if end > begin and size + grown > BYTES_MAX:
                yield part[begin:end]
                begin, size = end, 0
            size += grown
        yield part[begin:]


def chunks(values: Sequence[T]) -> Iterator[list[T]]:
    """The values in pieces that a statement can carry, when they are short."""
    for start in range(0, len(values), ROWS_MAX):
        yield list(values[start : start + ROWS_MAX])


def job_columns(
    orders: Sequence[Order], behind: Sequence[UUID | None] | None = None
) -> dict[str, object]:
    """The parameters of the statement that accepts jobs, each with a document of its own.

    ``behind`` is who each is born behind.
    """
    behind = behind or (None,) * len(orders)
    return {
        "ids": uuids([each.spec.id for each in orders]),
        "run_ats": times([each.run_at for each in orders]),
        "delays": numbers([_delay(each) for each in orders]),
        "formats": numbers([format_of_spec(each.spec) for each in orders]),
        "data": texts(
            [encode_spec(each.spec, one) for each, one in zip(orders, behind, strict=True)]
        ),
        "kind": KINDS[Enqueued.kind],
    }


def alike_columns(orders: Alike) -> dict[str, object]:
    """The parameters of the statement that accepts jobs that are alike."""
    pattern = orders.pattern
    return {
        "ids": uuids(orders.ids),
        "args": texts(orders.args),
        "head": orders.head,
        "run_at": None if pattern.run_at is None else moment(pattern.run_at),
        "delay": str(_delay(pattern)),
        "format": str(format_of_spec(pattern.spec)),
        "kind": KINDS[Enqueued.kind],
    }


def as_alike(orders: Sequence[Order]) -> Alike | None:
    """The orders as what they are if they differ in nothing but id and arguments; or None."""
    if isinstance(orders, Alike):
        return orders
    pattern = orders[0]
    ids, args = [each.spec.id for each in orders], [each.spec.args for each in orders]
    alike = Alike(pattern, ids, args, encode_head(pattern.spec))
    others = zip(alike, orders, strict=True)
    return alike if len(orders) == 1 or all(one == other for one, other in others) else None


def _delay(order: Order) -> int:
    return timedelta(seconds=order.delay) // MICROSECOND


def birth(order: Order, at: datetime, behind: UUID | None = None) -> Enqueue:
    """The command that the domain is asked for an order accepted at ``at``."""
    earliest = at + timedelta(seconds=order.delay)
    run_at = earliest if order.run_at is None else max(earliest, order.run_at)
    return Enqueue(at, replace(order.spec, enqueued_at=at), run_at, behind)


def explain(orders: Sequence[Order], at: datetime) -> NoReturn:
    """Let the domain say which order it refuses, and why."""
    for order in orders:
        try:
            decide(None, birth(order, at))
        except Exception as error:
            raise Refused(error) from None
    raise AssertionError("the statement refused what the domain accepts")
