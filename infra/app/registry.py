"""Job types: a handler, its name, and what all of its jobs have in common.

A registered handler is a JobType from then on: ``sync_page.enqueue(session, ...)`` writes a job,
``sync_page.handler`` is the function as it was written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from ...domain.errors import InvalidValue
from ...domain.job import Group, Job, Policy
from ...domain.retry import Retry
from ...domain.values import Json
from ..caller_ports import Alike, Order, Receipt
from ..documents import encode_head
from . import arguments, results
from .handlers import Face
from .ids import new_id, new_ids
from .options import (
    ENQUEUE_OPTIONS,
    KEYS,
    check_known,
)
from .plain import kind
from .producer import Defaults, Receipts, Submit, make_order
from .writing import Rows

PATTERNS_MAX = 1_000


class JobType:
    """A registered handler.

    ``name`` is what its jobs are called in the database, ``retry`` the policy between attempts,
    ``is_async`` whether the handler is a coroutine function, ``executor`` where it runs if it is
    none: "thread" or "process".  ``rows`` gives a run its row in a transaction of its handler's.
    """

    executor: str = "thread"
    rows: Callable[[], Rows] | None = None

    def __init__(
        self,
        face: Face,
        defaults: Defaults,
        retry: Retry,
        submit: Submit,
        rows: Callable[[], Rows] | None = None,
    ) -> None:
        self.face = face
        self.defaults = defaults
        self.retry = retry
        self.executor = defaults.executor
        self.rows = rows
        self._submit = submit
        #: A producer of many items has most of them for few keys.
        self._pattern = lru_cache(PATTERNS_MAX)(self._new_pattern)

    @property
    def name(self) -> str:
        """The registered name."""
        return self.defaults.name

    @property
    def queue(self) -> str:
        """The queue of its jobs unless an enqueue names another."""
        return self.defaults.queue

    @property
    def policy(self) -> Policy:
        """Budget, time-out, lease (in seconds), and what becomes of failures and interruptions."""
        return self.defaults.policy

    @property
    def group(self) -> Group | None:
        """The group policy, None for single jobs."""
        return self.defaults.group

    @property
    def handler(self) -> Callable[..., Any]:
        """The function as it was written."""
        return self.face.handler

    @property
    def is_async(self) -> bool:
        """Whether the handler is an ``async def``."""
        return self.face.is_async

    def invoke(self, run: object, job: Job) -> Any:
        """Call the handler with the job's typed arguments; a coroutine for an ``async def`` one.

        Raises InvalidValue when the stored arguments are not what the handler declares.
        """
        face = self.face
        if self.group is None:
            return face.call(run, arguments.decode(face, job.spec.args))
        return face.call(run, {face.items: arguments.decode_items(face, job.items)})

    def encode_result(self, value: object) -> Json:
        """The JSON document of what the handler returned.  Raises ResultRefused."""
        return results.encode_result(value)

    def order(
        self, args: tuple[object, ...], given: Mapping[str, object], options: Mapping[str, object]
    ) -> Order:
        """A checked order.  Keywords that are options count as options, the rest as arguments."""
        chosen, rest = self._split(given, options)
        if self.group is None:
            return make_order(self.defaults, arguments.document(self.face, args, rest), chosen)
        item = self._one_item(args, rest)
        return make_order(self.defaults, arguments.encode_item(self.face, item), chosen)

    def one(self, args: tuple[object, ...], given: Mapping[str, object]) -> Sequence[Order]:
        """One checked order.  Those without options are alike, and so are the items of a key."""
        grouped = self.group is not None
        key = given.get("group_key")
        # (A key of another class may be equal to one that is written otherwise.)
        if len(given) != grouped or (grouped and type(key) is not str):
            return (self.order(args, given, {}),)
        if grouped:
            document = arguments.encode_item(self.face, self._one_item(args, {}))
        else:
            document = arguments.document(self.face, args, given)
        plain = self._pattern(key)
        return Alike(plain.pattern, (new_id(),), (document,), plain.head)

    def _new_pattern(self, group_key: str | None) -> Alike:
        """What all orders without options have in common, or all items of a key."""
        options = {} if group_key is None else {"group_key": group_key}
        pattern = make_order(self.defaults, "null", options)
        return Alike(pattern, (), (), encode_head(pattern.spec))

    def order_named(self, args: object, options: Mapping[str, object]) -> Order:
        """A checked order from JSON values: arguments by name, or the one item of a group."""
        check_known(options, ENQUEUE_OPTIONS)
        if self.group is not None:
            document = arguments.encode_item(self.face, args, loosely=True)
        elif isinstance(args, dict):
            document = arguments.encode_named(self.face, _texts(cast(dict[object, object], args)))
        else:
            raise InvalidValue("args", kind(args), "give a dict of the arguments by name")
        return make_order(self.defaults, document, options)

    def submit(self, caller: object, orders: Sequence[Order]) -> Receipts | Awaitable[Receipts]:
        """Hand checked orders to the store in the caller's transaction."""
        return self._submit(caller, orders)

    def submit_one(self, caller: object, order: Sequence[Order]) -> Receipt | Awaitable[Receipt]:
        """Hand over the only order."""
        receipts = self._submit(caller, order)
        return receipts[0] if isinstance(receipts, tuple) else _first(receipts)

    def orders(self, many: Iterable[object], options: Mapping[str, object]) -> Sequence[Order]:
        """Checked orders for many: each the one argument, or a tuple of several."""
        told = [name for name in KEYS if callable(options.get(name))]
        if told or self.group is not None:
            return self._told(many, options, told)
        given = self._given(many)
        first = next(given, None)
        if first is None:
            return ()
        # With the same options for all, the first is checked whole, and of the others what differs.
        pattern = self.order(first, {}, options)
        args = [pattern.spec.args, *(arguments.document(self.face, each, {}) for each in given)]
        return Alike(pattern, new_ids(len(args)), args, encode_head(pattern.spec))

    def _told(
        self, many: Iterable[object], options: Mapping[str, object], told: Sequence[str]
    ) -> list[Order]:
        """Orders of which each has options of its own, as functions tell them."""
        orders: list[Order] = []
        for place, each in enumerate(many):
            chosen = dict(options)
            for name in told:
                chosen[name] = cast(Callable[[object], object], options[name])(each)
            orders.append(self.order(self._arguments(each, place), {}, chosen))
        return orders

    def _given(self, many: Iterable[object]) -> Iterator[tuple[object, ...]]:
        """The arguments of each of many."""
        if self._takes_one:
            return zip(many)
        return (self._arguments(each, place) for place, each in enumerate(many))

    @property
    def _takes_one(self) -> bool:
        return self.group is not None or len(self.face.hints) == 1

    def _arguments(self, given: object, place: int) -> tuple[object, ...]:
        if self._takes_one:
            return (given,)
        if not isinstance(given, tuple):
            raise InvalidValue(f"[{place}]", kind(given), "give the arguments as a tuple")
        return cast(tuple[object, ...], given)

    def _split(
        self, given: Mapping[str, object], options: Mapping[str, object]
    ) -> tuple[dict[str, object], dict[str, object]]:
        chosen, rest = dict(options), dict[str, object]()
        for name, value in given.items():
            (chosen if name in ENQUEUE_OPTIONS else rest)[name] = value
        known = ENQUEUE_OPTIONS.union(self.face.hints)
        check_known(given, known, "an unknown option or argument")
        check_known(options, ENQUEUE_OPTIONS)
        return chosen, rest

    def _one_item(self, args: tuple[object, ...], rest: Mapping[str, object]) -> object:
        values = (*args, *rest.values())
        if len(values) != 1:
            raise InvalidValue("item", f"{len(values)} items", "give one item, or use enqueue_many")
        return values[0]

    def __repr__(self) -> str:
        return f"<job type {self.name!r}: {self.face.name}>"


def _texts(given: dict[object, object]) -> dict[str, object]:
    """Arguments by name, when every name is a text."""
    for name in given:
        if not isinstance(name, str):
            raise InvalidValue("args", f"{kind(name)} as a name", "names of arguments are texts")
    return cast(dict[str, object], given)


async def _first(receipts: Awaitable[Receipts]) -> Receipt:
    return (await receipts)[0]
