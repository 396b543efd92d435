"""How a job comes to be, alone or as a group of items."""

from __future__ import annotations

from attrs import evolve as replace

from ..commands import CloseGroup, Enqueue, JoinItems, OpenGroup
from ..errors import GroupRefused, IllegalTransition, InvalidValue
from ..events import Enqueued, Event, GroupClosed, ItemsJoined
from ..grouping import due_after, due_at_birth, hold_until
from ..job import Job
from ..states import State
from ..values import CloseReason
from .guard import absent, existing, moment


def enqueue(job: Job | None, command: Enqueue) -> tuple[Event, ...]:
    """A job without a group, due at its ``run_at`` or at once."""
    absent(job, "enqueue")
    spec, at = command.spec, command.at
    if spec.group is not None:
        raise InvalidValue("group", "a job type with a group", "open a group with its first items")
    due = at if command.run_at is None else max(at, command.run_at)
    if spec.expires_at is not None and spec.expires_at <= due:
        raise InvalidValue(
            "expires_at",
            f"{spec.expires_at.isoformat()}, not after the start at {due.isoformat()}",
            "let it expire later, or leave it out",
        )
    return (Enqueued(at, spec, due, command.behind),)


def open_group(job: Job | None, command: OpenGroup) -> tuple[Event, ...]:
    """A group with its first items; one that is full at birth is closed in the same breath."""
    absent(job, "open group")
    if command.spec.group is None or command.spec.group_key is None:
        raise InvalidValue("group", "a job type without a group", "enqueue it as a single job")
    if not command.items:
        raise InvalidValue("items", "an empty list", "open a group with at least one item")
    # Producers at once draw the numbers and the times of their items in any order.
    limit = hold_until(command.spec.group, min(each.at for each in command.items))
    spec = replace(command.spec, hold_until=limit)
    due = max(command.at, due_at_birth(command.spec.group, command.items, limit))
    born = Enqueued(command.at, spec, due)
    job = Job(spec, State.GROUPED, 1, born.at, born.due_at)
    return (born, *join_items(job, JoinItems(command.at, command.items)))


def join_items(job: Job | None, command: JoinItems) -> tuple[Event, ...]:
    """Items for an open group.  Once due, its time is never moved; when full it closes."""
    job = existing(job, "join items to")
    group, limit = job.spec.group, job.spec.hold_until
    if job.state is not State.GROUPED or group is None or limit is None:
        raise GroupRefused(job.id, f"it is {job.state}, no open group")
    size = len(job.items) + len(command.items)
    if not command.items:
        raise GroupRefused(job.id, "there are no items to join")
    if size > group.max_size:
        raise GroupRefused(job.id, f"{size} items would exceed its {group.max_size}")
    at, due = moment(job, command.at), job.due_at
    if due > at:
        for item in command.items:
            due = due_after(group, due, item.at, limit)
    joined = ItemsJoined(
        at,
        tuple(item.args for item in command.items),
        tuple(item.id for item in command.items),
        tuple(item.at for item in command.items),
        due,
    )
    if size < group.max_size:
        return (joined,)
    return (joined, GroupClosed(at, CloseReason.FULL, min(at, due)))


def close_group(job: Job | None, command: CloseGroup) -> tuple[Event, ...]:
    """Close an open group before it is full, so that it is due at once."""
    job = existing(job, "close")
    if job.state is not State.GROUPED:
        raise IllegalTransition(job.id, "close", job.state, "Only an open group can be closed.")
    at = moment(job, command.at)
    return (GroupClosed(at, command.reason, min(at, job.due_at)),)
