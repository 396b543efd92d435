"""How far a rebuild has come, as its checkpoint keeps it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from attrs import evolve, frozen

from .position import Position, position_of


@frozen
class Place:
    """The checkpoint: jobs up to ``last`` are copied (None, with ``copied``: all).

    ``position`` is where the log has been read to, ``waiters`` whether rows know who waits for
    them, ``rows`` how many the shadow has.
    """

    position: Position
    last: UUID | None = None
    copied: bool = False
    waiters: bool = False
    events: int = 0
    rows: int = 0

    def moved(self, position: Position, events: int, rows: int) -> Place:
        """After a window that ends at ``position``: so many events and rows more."""
        return evolve(self, position=position, events=self.events + events, rows=self.rows + rows)

    def document(self) -> dict[str, Any]:
        """As it is stored."""
        last = None if self.last is None else str(self.last)
        return {
            "position": self.position.document(),
            "last": last,
            "copied": self.copied,
            "waiters": self.waiters,
            "events": self.events,
            "rows": self.rows,
        }


def place_of(document: Any) -> Place:
    """The place that ``Place.document`` told.  Raises KeyError when something is missing."""
    last = document["last"]
    return Place(
        position_of(document["position"]),
        None if last is None else UUID(last),
        document["copied"],
        document["waiters"],
        document["events"],
        document["rows"],
    )
