"""The envelopes around events: what is to be appended, and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from attrs import evolve as replace

from .events import Event
from .frozen import frozen
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
    """Whether the log holds these very events, whatever their time.

    True when a commit went through but its answer was lost and the same work comes again: a lease
    token belongs to one run of one worker, so equal events under it are a retransmission.  They
    may stand behind renewals that the worker has not heard of; events without a token must stand
    at the very versions that the change asks for.
    """
    first = 1 if change.before is None else change.before.version + 1
    rest = [recorded.event for recorded in stream if recorded.version >= first]
    expected = change.events
    if not expected:
        return True
    fenced = getattr(expected[0], "lease", None) is not None
    starts = range(len(rest) - len(expected) + 1) if fenced else range(1)
    return any(_alike_all(rest[start : start + len(expected)], expected) for start in starts)


def _alike_all(recorded: Sequence[Event], expected: Sequence[Event]) -> bool:
    pairs = zip(recorded, expected, strict=False)
    return len(recorded) == len(expected) and all(_alike(*pair) for pair in pairs)


def _alike(recorded: Event, expected: Event) -> bool:
    if recorded.kind != expected.kind:
        return False
    # Some times follow the moment of the decision, some (a time-out) do not: none is compared.
    times = {
        name: getattr(recorded, name)
        for name in ("at", "due_at", "lease_until")
        if hasattr(recorded, name)
    }
    return replace(expected, **times) == recorded
