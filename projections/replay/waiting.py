"""How a job came to wait: its planned waits, and the stretches in which it was ready to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from sys import intern
from typing import NamedTuple
from uuid import UUID

from attrs import frozen

from ...domain.events import Leased
from ...domain.job import Job
from ...domain.states import WAITING, State
from ..streams import Step
from .clock import micros


class Cause(StrEnum):
    """What a job waited for, the first that applies."""

    DELAY = "delay"
    """It was not due yet: as asked at its birth, or when it was given back."""
    RETRY_WAIT = "retry wait"
    """It was not due yet, because its last run had failed."""
    GROUP_HOLD = "group hold"
    """It was a group that waited for more items."""
    BLOCKED = "blocked by"
    """It was due, behind another job."""
    PAUSED = "paused"
    """Its queue was paused."""
    NO_WORKER = "no worker"
    """No living worker served its queue."""
    NO_HANDLER = "no handler"
    """None of those that did had a handler of its name."""
    BUSY = "busy"
    """Every slot of those that had was taken, or the queue's limit was reached."""
    BEHIND = "behind"
    """There was a free slot, but jobs ahead of it in claim order were started first."""
    DISPATCH = "dispatch"
    """There was a free slot and nobody ahead: what a worker took to look and to lease."""
    UNKNOWN = "unknown"
    """The facts of that time are missing."""


PLANNED = {
    State.QUEUED: Cause.DELAY,
    State.RETRY_WAIT: Cause.RETRY_WAIT,
    State.GROUPED: Cause.GROUP_HOLD,
}


class Piece(NamedTuple):
    """A stretch of a wait in microseconds since 1970; ``cause`` is None when it was ready."""

    cause: Cause | None
    since: int
    until: int
    by: UUID | None = None


@frozen
class Pending:
    """One wait before its ready stretches are explained.

    ``since``, ``started`` and ``due_at``, what claims went by in the end, are microseconds since
    1970.  ``started`` and ``worker`` are None for a wait that is not over, which ends with the
    window.
    """

    job_id: UUID
    name: str
    queue: str
    priority: int
    seq: int
    due_at: int
    since: int
    pieces: tuple[Piece, ...]
    version: int
    start: int
    worker: str | None
    started: int | None


def waits_of(life: Sequence[Step], until: datetime | None = None) -> Iterator[Pending]:
    """The waits of one life: one for each start and, given ``until``, the one that goes on."""
    pieces: list[Piece] = []
    last: Step | None = None
    seq, since = life[0].recorded.event_id, 0
    for step in life:
        if last is not None and last.after.state in WAITING:
            pieces += _stretch(last.after, micros(step.recorded.at), pieces)
            event = step.recorded.event
            if isinstance(event, Leased):
                version = step.recorded.version
                yield _pending(last.after, since, pieces, seq, version, event)
        elif step.after.state in WAITING:
            since, pieces = micros(step.recorded.at), []
        last = step
    if until is not None and last is not None and last.after.state in WAITING:
        pieces += _stretch(last.after, micros(until), pieces)
        yield _pending(last.after, since, pieces, seq, last.recorded.version, None)


def _stretch(job: Job, until: int, before: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces between one event of a waiting job and the next, none of them over another."""
    since, due = micros(job.at), micros(job.due_at)
    if before:
        since = max(since, before[-1].until)
    ready = min(max(since, due), max(since, until))
    if ready > since:
        yield Piece(PLANNED[job.state], since, ready)
    if until > ready:
        cause = None if job.blocked_by is None else Cause.BLOCKED
        yield Piece(cause, ready, until, job.blocked_by)


def _pending(
    job: Job, since: int, pieces: Sequence[Piece], seq: int, version: int, event: Leased | None
) -> Pending:
    spec = job.spec
    return Pending(
        spec.id,
        intern(spec.name),
        intern(spec.queue),
        spec.priority,
        seq,
        micros(job.due_at),
        since,
        tuple(pieces),
        version,
        job.starts + 1 if event is None else event.start,
        None if event is None else intern(event.worker),
        None if event is None else micros(event.at),
    )
