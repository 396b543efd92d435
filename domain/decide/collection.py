"""How the items of one key become changes: what the collector appends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from attrs import evolve as replace

from ..commands import CloseGroup, Command, JoinItems, OpenGroup
from ..grouping import Arrival, Share, share_out
from ..job import Job
from ..log import Change
from ..states import State
from . import change


def collect(
    open_group: Job | None, arrivals: Sequence[Arrival], new_id: Callable[[], UUID], at: datetime
) -> tuple[Change, ...]:
    """The changes that put ``arrivals`` of one key, in order, into its open group and new ones.

    ``open_group`` is the key's one open group or None; ``new_id`` gives each new group its id.
    """
    return tuple(
        _gather(share, None if share.opens else open_group, new_id, at)
        for share in share_out(open_group, arrivals)
    )


def _gather(share: Share, group: Job | None, new_id: Callable[[], UUID], at: datetime) -> Change:
    items = tuple(each.item for each in share.arrivals)
    command: Command
    if share.opens:
        first = share.arrivals[0]
        spec = replace(first.spec, id=new_id(), enqueued_at=at, sequence=first.item.sequence)
        command = OpenGroup(at, spec, items)
    elif items:
        command = JoinItems(at, items)
    else:
        command = CloseGroup(at)
    made = change(group, command)
    if not share.closes or made.after.state is not State.GROUPED:
        return made
    closed = change(made.after, CloseGroup(at))
    return Change(group, made.events + closed.events, closed.after)
