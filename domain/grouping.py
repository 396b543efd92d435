"""How items with one key become few jobs.

``run_at`` of a group is ``min(max(run_at, item time + window), first item + max_hold)``: each item
pushes it on by the window, and the hold stops a steady stream from pushing it on for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from .commands import Item
from .frozen import frozen
from .job import Group, Job, JobSpec


@frozen
class Arrival:
    """An item in the inbox, with the spec that a group would be born with if it came first.

    (The spec's id, time and hold are not its own: the collector gives each new group its own.)
    """

    item: Item
    spec: JobSpec


@frozen
class Share:
    """Items of one collection that go to one group.

    ``opens`` tells that the group is a new one; ``closes`` that another group of the key follows,
    so that this one must take no more.  A share of the open group may be empty and only close it.
    """

    opens: bool
    arrivals: tuple[Arrival, ...]
    closes: bool


def hold_until(group: Group, first_item_at: datetime) -> datetime:
    """The time past which the group is not held."""
    return first_item_at + timedelta(seconds=group.max_hold)


def due_after(
    group: Group, due_at: datetime | None, item_at: datetime, limit: datetime
) -> datetime:
    """When a group is due once an item of ``item_at`` has joined one due at ``due_at``."""
    pushed = item_at + timedelta(seconds=group.window)
    return min(pushed if due_at is None else max(due_at, pushed), limit)


def due_at_birth(group: Group, items: Sequence[Item], limit: datetime) -> datetime:
    """When a group of these first items is due, however late they were collected.

    An item that came when the group would have been due already does not postpone it.
    """
    due_at = due_after(group, None, items[0].at, limit)
    for item in items[1:]:
        if due_at > item.at:
            due_at = due_after(group, due_at, item.at, limit)
    return due_at


def share_out(open_group: Job | None, arrivals: Sequence[Arrival]) -> tuple[Share, ...]:
    """Share the arrivals of one key, in order, among its open group and new ones.

    The open group takes what it has room for; each further group takes as many as its first item's
    policy allows.  Items of another owner never mix: they begin a group of their own, and the group
    before them is closed, so that a key has one open group at most.
    """
    shares: list[Share] = []
    rest = tuple(arrivals)
    if open_group is not None and open_group.spec.group is not None:
        room = open_group.spec.group.max_size - len(open_group.items)
        joining = _head(rest, open_group.spec.owner, room)
        rest = rest[len(joining) :]
        if joining or rest:
            shares.append(Share(False, joining, bool(rest)))
    while rest:
        first = rest[0].spec
        joining = _head(rest, first.owner, 1 if first.group is None else first.group.max_size)
        rest = rest[len(joining) :]
        shares.append(Share(True, joining, bool(rest)))
    return tuple(shares)


def _head(arrivals: Sequence[Arrival], owner: str | None, most: int) -> tuple[Arrival, ...]:
    same = takewhile(lambda each: each.spec.owner == owner, arrivals[: max(0, most)])
    return tuple(same)
