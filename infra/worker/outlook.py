"""Reading what a look at the queue has brought."""

from __future__ import annotations

from datetime import datetime

from ..ports import Outlook


def due(moment: datetime | None, at: datetime) -> bool:
    """Whether a moment has come."""
    return moment is not None and moment <= at


def seconds_to_next(outlook: Outlook) -> float:
    """How long until something new happens; what is due already is not new."""
    moments = (outlook.next_due, outlook.next_lease_end)
    waits = [(moment - outlook.at).total_seconds() for moment in moments if moment is not None]
    return min((wait for wait in waits if wait > 0), default=float("inf"))
