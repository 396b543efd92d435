"""The envelopes around events: what is to be appended, and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from attrs import evolve as replace
from attrs import frozen

from .events import Event
from .job import Job


@frozen
class Change:
    """Events to append to one stream if it still stands at ``before``'s version.

    ``before`` is None for a birth.  ``after`` is the job that the events make of it.
    """

    before: Job | None
    events: tuple[Event, ...]
    after: Job


@frozen
class Recorded:
    """One event as the log holds it.

    ``version`` counts 1, 2, 3 … within the job, ``event_id`` grows over the whole log in no
    promised order, ``xid`` is the top-level transaction that wrote it.
    """

    job_id: UUID
    version: int
    event_id: int
    xid: int
    event: Event

    @property
    def at(self) -> datetime:
        """The database's time of the event."""
        return self.event.at


def already_recorded(change: Change, stream: Sequence[Recorded]) -> bool:
    """Whether the log holds these very events at these versions, whatever their time.

    True when a commit went through but its answer was lost and the same work comes again: a lease
    token belongs to one run of one worker, so equal events under it are a retransmission.
    """
    first = 1 if change.before is None else change.before.version + 1
    there = {recorded.version: recorded.event for recorded in stream}
    return all(
        (event := there.get(version)) is not None and _alike(event, expected)
        for version, expected in enumerate(change.events, first)
    )


def _alike(recorded: Event, expected: Event) -> bool:
    if recorded.kind != expected.kind:
        return False
    shift = recorded.at - expected.at
    moved = {
        name: value + shift
        for name in ("due_at", "lease_until")
        if (value := getattr(expected, name, None)) is not None
    }
    return replace(expected, at=recorded.at, **moved) == recorded
