"""A row of the claim table beside the fold of its stream: the one comparison of the two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .row import Row, SpecRow, StateRow, to_row
from .streams import Step


class KeptRow(NamedTuple):
    """A row of the claim table with its sequence number, the ``event_id`` of its birth.

    (Of a group whose first item drew a number it is that number.)  ``has_waiter`` tells that
    another job waits for this one.
    """

    seq: int
    row: Row
    has_waiter: bool = False


def expected(life: Sequence[Step], *, awaited: bool = False) -> KeptRow | None:
    """The row that a job should have, None for a finished one.

    ``awaited``: the row of another job says that it is blocked by this one.
    """
    last = life[-1].after
    row = to_row(last)
    if row is None:
        return None
    return KeptRow(last.spec.sequence or life[0].recorded.event_id, row, awaited)


def differences(
    life: Sequence[Step], kept: KeptRow | None, *, awaited: bool = False
) -> tuple[str, ...]:
    """How the row differs from the fold, in words; nothing when it does not.

    A row may think that it is waited for when it is not: whoever ends it looks, and finds nobody.
    Without a ``life`` a job has no stream, and should have no row.
    """
    if not life:
        return () if kept is None else ("it has a row and no stream",)
    wanted, last = expected(life, awaited=awaited), life[-1].after
    if wanted is None:
        return () if kept is None else (f"it is {last.state} and not held, yet it has a row",)
    if kept is None:
        return (f"it is {last.state} and has no row",)
    found = [] if kept.seq == wanted.seq else [f"seq is {kept.seq}, by its birth {wanted.seq}"]
    found += _differing(kept.row, wanted.row)
    if awaited and not kept.has_waiter:
        found.append("it does not know that another job waits for it")
    return tuple(found)


def _differing(kept: Row, wanted: Row) -> list[str]:
    """The columns that differ, without values of arguments, which may be private or huge."""
    found: list[str] = []
    names = (*SpecRow._fields, *StateRow._fields)
    for name, value, right in zip(
        names, (*kept[0], *kept[1]), (*wanted[0], *wanted[1]), strict=True
    ):
        if value == right or (name == "format" and kept[1].format >= wanted[1].format):
            continue  # (A row keeps the newest format that it ever needed.)
        if name in ("args", "items"):
            found.append(f"{name} differ from the log")
        else:
            found.append(f"{name} is {value}, by the log {right}")
    return found
