"""From arguments and options to an order that the store can accept.  Everything is checked here."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from attrs import frozen

from ...domain import limits
from ...domain.errors import InvalidValue
from ...domain.job import Group, JobSpec, Policy
from ...domain.values import Json, OnConflict, OnHold
from ..caller_ports import Order, Receipt
from .ids import new_id
from .options import after_of, on_conflict_of, optional_text, start_of, time_of

Receipts: TypeAlias = tuple[Receipt, ...]

#: The store stamps the time of acceptance; this stands in its place until then.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
#: An item's job is made later, by a worker: it has no start of its own, and no id to answer with.
NOT_FOR_GROUPS = {
    "run_at": "the window says when",
    "delay": "the window says when",
    "expires_at": "the window says when",
    "unique_key": "items with one group_key join into one job anyway",
    "idempotency_key": "the job that it would name is not there yet",
    "on_conflict": "items never conflict",
    "ordering_key": "Group(serial=True) puts the groups of one group_key in order",
    "after": "its job is not there yet, and other items would wait with it",
}


class Submit(Protocol):
    """Accepts orders in a caller's transaction; an asynchronous caller awaits the receipts."""

    def __call__(
        self, caller: object, orders: Sequence[Order], /
    ) -> Receipts | Awaitable[Receipts]:
        """Raises what the caller's driver raises, and NoTransaction when there is none to join."""
        ...


@frozen
class Defaults:
    """What a job type gives to each of its jobs, and where workers run them."""

    name: str
    queue: str
    priority: int
    policy: Policy
    group: Group | None
    label: str | None
    executor: str = "thread"
    on_hold: OnHold = OnHold.BLOCK


def make_order(defaults: Defaults, args: Json, options: Mapping[str, object]) -> Order:
    """An order with checked options.  Raises InvalidValue naming the option that was refused."""
    run_at, delay = start_of(options)
    expires_at = options.get("expires_at")
    label = options.get("label")
    spec = JobSpec(
        id=new_id(),
        name=defaults.name,
        args=args,
        enqueued_at=NEVER,
        queue=_queue(defaults, options),
        priority=_priority(defaults, options),
        policy=defaults.policy,
        label=defaults.label
        if label is None
        else optional_text("label", label, limits.LABEL_BYTES_MAX),
        owner=optional_text("owner", options.get("owner"), limits.KEY_BYTES_MAX),
        subject=optional_text("subject", options.get("subject"), limits.KEY_BYTES_MAX),
        expires_at=None if expires_at is None else time_of("expires_at", expires_at),
        group_key=_group_key(defaults, options),
        group=defaults.group,
        unique_key=_key("unique_key", options),
        ordering_key=_ordering_key(defaults, options),
        on_hold=defaults.on_hold,
        after=after_of(options.get("after")),
    )
    request = _key("idempotency_key", options)
    return Order(spec, run_at, delay, _on_conflict(options), request)


def _key(name: str, options: Mapping[str, object]) -> str | None:
    return optional_text(name, options.get(name), limits.KEY_BYTES_MAX)


def _ordering_key(defaults: Defaults, options: Mapping[str, object]) -> str | None:
    """The groups of a serial type are in order by their group key."""
    if defaults.group is not None and defaults.group.serial:
        return _key("group_key", options)
    return _key("ordering_key", options)


def _on_conflict(options: Mapping[str, object]) -> OnConflict:
    if "on_conflict" not in options:
        return OnConflict.REJECT
    # A function that tells the keys of many may tell that one has none.
    if "unique_key" not in options:
        raise InvalidValue("on_conflict", "on_conflict without a unique_key", "give the key too")
    return on_conflict_of(options["on_conflict"])


def _queue(defaults: Defaults, options: Mapping[str, object]) -> str:
    if "queue" not in options:
        return defaults.queue
    return check_queue(options["queue"])


def check_queue(value: object) -> str:
    """A queue name: any text up to 128 bytes, taken as it is."""
    queue: str = limits.check_text("queue", value, limits.NAME_BYTES_MAX)  # type: ignore[arg-type]
    return queue


def _priority(defaults: Defaults, options: Mapping[str, object]) -> int:
    if "priority" not in options:
        return defaults.priority
    return limits.check_priority(options["priority"])  # type: ignore[arg-type]


def _group_key(defaults: Defaults, options: Mapping[str, object]) -> str | None:
    key = options.get("group_key")
    if defaults.group is None:
        if key is not None:
            raise InvalidValue(
                "group_key",
                f"a key for {defaults.name!r}, which has no group,",
                "leave it out, or register the handler with group=Group(...)",
            )
        return None
    for name, why in NOT_FOR_GROUPS.items():
        if options.get(name) is not None:
            raise InvalidValue(name, f"{name} for an item of a group", f"leave it out; {why}")
    if key is None:
        raise InvalidValue("group_key", "a missing key", "say which items belong together")
    return limits.check_text("group_key", key, limits.KEY_BYTES_MAX)  # type: ignore[arg-type]
