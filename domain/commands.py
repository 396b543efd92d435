"""Everything that may be asked of a job.

A command carries the facts its decision needs: ``at`` is the database's time, ``token`` the lease
under which a worker writes.  Nothing here reads a clock.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from .frozen import frozen
from .job import JobSpec
from .values import CloseReason, EffectKind, ExpiryCause, Json, Outcome, ReleaseReason


@frozen
class Item:
    """One thing of a group as it lies in the inbox: its id, its time of arrival, its argument.

    ``sequence`` is its place in the order of its key, None where groups of a key need no order.
    """

    id: int
    at: datetime
    args: Json
    sequence: int | None = None


@frozen
class Enqueue:
    """Accept a job that may start at ``run_at``, or at once when that has passed.

    ``behind`` is an earlier job of its key that is accepted in the same breath.
    """

    at: datetime
    spec: JobSpec
    run_at: datetime | None = None
    behind: UUID | None = None


@frozen
class OpenGroup:
    """Accept a group with its first items, at least one, in arrival order."""

    at: datetime
    spec: JobSpec
    items: tuple[Item, ...]


@frozen
class JoinItems:
    """Add items to an open group, in arrival order."""

    at: datetime
    items: tuple[Item, ...]


@frozen
class CloseGroup:
    """Let the group take no more items and be due at once."""

    at: datetime
    reason: CloseReason = CloseReason.FLUSHED


@frozen
class Reschedule:
    """Let a waiting job be due at ``due_at`` instead, or at once when that has passed."""

    at: datetime
    due_at: datetime


@frozen
class TakeLease:
    """Lease a due job to a worker for the term of its policy.

    ``behind`` is the unfinished job that must end first: the nearest earlier one of its ordering
    key, or the one that it comes after.  ``parent_failed`` tells that the latter has failed.
    """

    at: datetime
    worker: str
    behind: UUID | None = None
    parent_failed: bool = False


@frozen
class Unblock:
    """Let a blocked job, or one that failed because its parent had, be due again."""

    at: datetime


@frozen
class Renew:
    """Extend a lease to ``lease_until``, at most to the end of the run's time-out."""

    at: datetime
    token: int
    lease_until: datetime


@frozen
class StartEffect:
    """Begin an effect outside: from now on its end is uncertain until it is told."""

    at: datetime
    token: int
    key: str
    destination: str
    effect: EffectKind = EffectKind.CALL


@frozen
class CompleteEffect:
    """Keep the receipt of an effect that is done; only a call must have been begun before."""

    at: datetime
    token: int
    key: str
    destination: str
    effect: EffectKind
    receipt: Json


@frozen
class ReleaseEffect:
    """Say that an effect that was begun has certainly not happened.

    ``reason`` is already redacted and bounded.
    """

    at: datetime
    token: int
    key: str
    reason: str


@frozen
class Complete:
    """End the run with success.  ``outcome`` is done or skipped."""

    at: datetime
    token: int
    result: Json = "null"
    outcome: Outcome = Outcome.DONE


@frozen
class Fail:
    """End the run with an error; retry after ``delay`` seconds if ``retry`` and the budget allow.

    ``error`` is already redacted and bounded.  ``interrupted``: the run broke because its process
    died or its worker stopped, and had no answer of its own.
    """

    at: datetime
    token: int
    error: str
    delay: float = 0.0
    retry: bool = True
    interrupted: bool = False


@frozen
class Release:
    """Give the job back, due after ``delay`` seconds.  Spends no attempt."""

    at: datetime
    token: int
    reason: ReleaseReason
    delay: float = 0.0
    note: str | None = None


@frozen
class ExpireLease:
    """End the lease ``token`` without an answer.

    LEASE_ENDED needs the lease's end to have passed; WORKER_LOST and TIMED_OUT are facts that were
    observed elsewhere.
    """

    at: datetime
    token: int
    cause: ExpiryCause


Command: TypeAlias = (
    Enqueue
    | OpenGroup
    | JoinItems
    | CloseGroup
    | Reschedule
    | TakeLease
    | Unblock
    | Renew
    | StartEffect
    | CompleteEffect
    | ReleaseEffect
    | Complete
    | Fail
    | Release
    | ExpireLease
)

COMMANDS: tuple[type[Command], ...] = (
    Enqueue,
    OpenGroup,
    JoinItems,
    CloseGroup,
    Reschedule,
    TakeLease,
    Unblock,
    Renew,
    StartEffect,
    CompleteEffect,
    ReleaseEffect,
    Complete,
    Fail,
    Release,
    ExpireLease,
)
