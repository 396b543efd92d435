"""Everything that can happen to a job, in the order in which a life goes.

An event is a fact: it carries its time and every outcome, so that a replay needs no policy, no
clock and no registry.  Where an event ends or extends a lease, ``lease`` is that lease's token.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, TypeAlias
from uuid import UUID

from .frozen import frozen
from .job import JobSpec
from .values import CloseReason, EffectKind, ExpiryCause, Json, Outcome, ReleaseReason


@frozen
class Enqueued:
    """The job was accepted: queued, or grouped when its spec has a group.

    ``blocked_by`` is an earlier job of its key that was accepted in the same breath.
    """

    kind: ClassVar[str] = "enqueued"
    at: datetime
    spec: JobSpec
    due_at: datetime
    blocked_by: UUID | None = None


@frozen
class ItemsJoined:
    """The items of one collection joined, in arrival order.

    ``item_ids`` are their inbox ids and ``arrived`` their times of arrival, one for each item.
    """

    kind: ClassVar[str] = "items_joined"
    at: datetime
    items: tuple[Json, ...]
    item_ids: tuple[int, ...]
    arrived: tuple[datetime, ...]
    due_at: datetime


@frozen
class GroupClosed:
    """The group takes no more items and is due."""

    kind: ClassVar[str] = "group_closed"
    at: datetime
    reason: CloseReason
    due_at: datetime


@frozen
class Rescheduled:
    """The job goes on waiting, but for another time."""

    kind: ClassVar[str] = "rescheduled"
    at: datetime
    due_at: datetime


@frozen
class Blocked:
    """The job waits for the end of another, ``by``, however long it has been due."""

    kind: ClassVar[str] = "blocked"
    at: datetime
    by: UUID


@frozen
class Unblocked:
    """A job for whose end this one may have waited has ended: it is due again."""

    kind: ClassVar[str] = "unblocked"
    at: datetime
    due_at: datetime


@frozen
class Leased:
    """A worker took the job.  The version of this event is the lease token."""

    kind: ClassVar[str] = "leased"
    at: datetime
    worker: str
    lease_until: datetime
    start: int


@frozen
class Heartbeat:
    """The worker is alive and its lease runs on."""

    kind: ClassVar[str] = "heartbeat"
    at: datetime
    lease: int
    lease_until: datetime


@frozen
class EffectStarted:
    """The handler is about to do something outside; from here on its end is uncertain."""

    kind: ClassVar[str] = "effect_started"
    at: datetime
    lease: int
    key: str
    destination: str
    effect: EffectKind


@frozen
class EffectCompleted:
    """The effect is done.  ``receipt`` is its JSON document, which every later run gets."""

    kind: ClassVar[str] = "effect_completed"
    at: datetime
    lease: int
    key: str
    destination: str
    effect: EffectKind
    receipt: Json


@frozen
class EffectReleased:
    """The effect has certainly not happened, and may be begun again.

    ``reason`` is redacted and bounded.
    """

    kind: ClassVar[str] = "effect_released"
    at: datetime
    lease: int
    key: str
    reason: str


@frozen
class Released:
    """The worker gave the job back without spending an attempt."""

    kind: ClassVar[str] = "released"
    at: datetime
    lease: int
    reason: ReleaseReason
    due_at: datetime
    note: str | None = None


@frozen
class RetryScheduled:
    """A counted run failed and another is due later.  ``error`` is redacted and bounded."""

    kind: ClassVar[str] = "retry_scheduled"
    at: datetime
    lease: int
    error: str
    due_at: datetime


@frozen
class LeaseExpired:
    """The lease ended without an answer: it spends an attempt, and the job is due at once."""

    kind: ClassVar[str] = "lease_expired"
    at: datetime
    lease: int
    cause: ExpiryCause
    due_at: datetime


@frozen
class Completed:
    """The handler succeeded.  ``result`` is its JSON document."""

    kind: ClassVar[str] = "completed"
    at: datetime
    lease: int
    result: Json = "null"
    outcome: Outcome = Outcome.DONE


@frozen
class Failed:
    """The job ended without success.  A held one waits for an operator.

    ``cause`` is why its lease ended without an answer, None when that is not what ended it.
    """

    kind: ClassVar[str] = "failed"
    at: datetime
    lease: int | None
    outcome: Outcome
    held: bool
    error: str
    cause: ExpiryCause | None = None


Event: TypeAlias = (
    Enqueued
    | ItemsJoined
    | GroupClosed
    | Rescheduled
    | Blocked
    | Unblocked
    | Leased
    | Heartbeat
    | EffectStarted
    | EffectCompleted
    | EffectReleased
    | Released
    | RetryScheduled
    | LeaseExpired
    | Completed
    | Failed
)

EVENTS: tuple[type[Event], ...] = (
    Enqueued,
    ItemsJoined,
    GroupClosed,
    Rescheduled,
    Blocked,
    Unblocked,
    Leased,
    Heartbeat,
    EffectStarted,
    EffectCompleted,
    EffectReleased,
    Released,
    RetryScheduled,
    LeaseExpired,
    Completed,
    Failed,
)
