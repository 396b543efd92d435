"""Entries of a tick that the store refused, settled apart so that the good ones are not held up."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import EffectRefused
from ..ports import DataRefused, Store
from .answers import Broke, Entry, Report, Write
from .order import go_on
from .settle import Settled, settle


def isolated(store: Store, entries: Sequence[Entry]) -> Settled:
    """Settle entries alone; a refused batch in halves until the one bad entry is failed."""
    try:
        return _alone(store, entries)
    except DataRefused as refusal:
        if len(entries) > 1:
            half = len(entries) // 2
            first, rest = entries[:half], entries[half:]
            return _joined(isolated(store, first), isolated(store, rest))
        return failed(store, entries[0], refusal.reason)


def failed(store: Store, entry: Entry, reason: str) -> Settled:
    """What becomes of an entry that the store holds in no form."""
    if isinstance(entry, Write):
        key, seen = entry.command.key, f"the database refused it: {reason}"
        error = EffectRefused(entry.job.id, key, seen, "Give it a key and a receipt of plain text")
        return Settled(answers=[(entry, error)])
    text = f"the database refused the end of this run: {reason}"
    try:
        return _alone(store, [Report(entry.job, Broke(text, 0.0, retry=False))])
    except DataRefused:
        return Settled(unrecorded=[entry])


def _alone(store: Store, entries: Sequence[Entry]) -> Settled:
    with store.transaction() as tx:
        settled = settle(tx, entries)
        go_on(tx)
        return settled


def _joined(one: Settled, two: Settled) -> Settled:
    return Settled(
        one.changes + two.changes,
        one.refused + two.refused,
        one.again + two.again,
        one.locked + two.locked,
        one.unrecorded + two.unrecorded,
        one.answers + two.answers,
    )
