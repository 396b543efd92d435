"""What all ways of accepting orders have in common."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve as replace

from ...domain.commands import Enqueue
from ...domain.decide import decide
from ...domain.events import Enqueued
from ...projections.row import format_of_spec
from ..caller_ports import Alike, Order
from ..codec import KINDS
from ..documents import encode_head
from .rows import numbers, texts, times, uuids

Row: TypeAlias = Sequence[Any]
Question: TypeAlias = tuple[str, dict[str, object]]
T = TypeVar("T")
Asking: TypeAlias = Generator[Question, Sequence[Row], T]

#: What one statement carries at most.
ROWS_MAX = 10_000
BYTES_MAX = 16 * 1024 * 1024

MICROSECOND = timedelta(microseconds=1)


class Refused(Exception):
    """The domain said no; what this call has written so far must be taken back."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self.why = why


def parts(orders: Sequence[Order], places: Iterable[int]) -> Iterator[list[int]]:
    """The places cut into parts that a statement can carry."""
    part: list[int] = []
    size = 0
    args = orders.args if isinstance(orders, Alike) else [each.spec.args for each in orders]
    for place in places:
        # Most characters are one byte in UTF-8, and the bound is no sharp one.
        grown = len(args[place]) + 400
        if part and (len(part) >= ROWS_MAX or size + grown > BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(place)
        size += grown
    if part:
        yield part


def chunks(values: Sequence[T]) -> Iterator[list[T]]:
    """The values in pieces that a statement can carry, when they are short."""
    for start in range(0, len(values), ROWS_MAX):
        yield list(values[start : start + ROWS_MAX])


def job_columns(
    orders: Sequence[Order], behind: Sequence[UUID | None] | None = None
) -> dict[str, object]:
    """The parameters of the statements that accept jobs; ``behind`` is who each is born behind.

    What several jobs have in common is sent once, and each names its number.
    """
    if isinstance(orders, Alike):
        ids, args, numbered = orders.ids, orders.args, {_head(orders.pattern): 1}
        chosen = [1] * len(orders)
    else:
        ids, args = [each.spec.id for each in orders], [each.spec.args for each in orders]
        numbered, chosen = dict[_Head, int](), list[int]()
        for order, one in zip(orders, behind or repeat(None), strict=False):
            chosen.append(numbered.setdefault(_head(order, one), len(numbered) + 1))
    return {
        "ids": uuids(ids),
        "args": texts(args),
        "chosen": numbers(chosen),
        "heads": texts([head.document for head in numbered]),
        "run_ats": times([head.run_at for head in numbered]),
        "delays": numbers([head.delay for head in numbered]),
        "formats": numbers([head.format for head in numbered]),
        "kind": KINDS[Enqueued.kind],
    }


class _Head(NamedTuple):
    """What jobs may have in common: their document but for the arguments, and when they start."""

    document: str
    run_at: datetime | None
    delay: int
    format: int


def _head(order: Order, behind: UUID | None = None) -> _Head:
    spec = order.spec
    delay = timedelta(seconds=order.delay) // MICROSECOND
    return _Head(encode_head(spec, behind), order.run_at, delay, format_of_spec(spec))


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
