"""From arguments and options to an order that the store can accept.  Everything is checked here."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from attrs import frozen

from ...domain import limits
from ...domain.errors import InvalidValue
from ...domain.job import Group, JobSpec, Policy
from ...domain.values import Json
from ..ports import Order, Receipt
from .ids import new_id
from .options import optional_text, start_of, time_of

Receipts: TypeAlias = tuple[Receipt, ...]

#: The store stamps the time of acceptance; this stands in its place until then.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
NOT_FOR_GROUPS = ("run_at", "delay", "expires_at")


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
    )
    return Order(spec, run_at, delay)


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
    for name in NOT_FOR_GROUPS:
        if options.get(name) is not None:
            raise InvalidValue(
                name, f"{name} for an item of a group", "leave it out; the window says when"
            )
    if key is None:
        raise InvalidValue("group_key", "a missing key", "say which items belong together")
    return limits.check_text("group_key", key, limits.KEY_BYTES_MAX)  # type: ignore[arg-type]
