"""The claim projection: the row that stands for a job while it is unfinished or held.

A row is two records: what never changes (``SpecRow``) and what every event may change
(``StateRow``).  ``from_row(*to_row(job)) == job`` for every job that has a row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias
from uuid import UUID

from ..domain.admission import is_suspect
from ..domain.job import Effect, Group, Job, JobSpec, Lease, Policy
from ..domain.states import ENDED, State
from ..domain.values import OnExhausted, OnExpired, OnHold, Outcome

#: The layout below.  A worker leaves rows of a newer format alone.
FORMAT = 2
#: The first layout: without order, effects and aborts.
FORMAT_PLAIN = 1

#: When a blocked job is due, for whoever looks for due jobs: not while it is blocked.
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


class SpecRow(NamedTuple):
    """The columns that are written once.  Seconds are floats, times aware datetimes."""

    id: UUID
    queue: str
    priority: int
    name: str
    args: str
    enqueued_at: datetime
    retries: int
    timeout: float
    lease_seconds: float
    on_exhausted: str
    label: str | None
    owner: str | None
    subject: str | None
    expires_at: datetime | None
    group_key: str | None
    group_window: float | None
    group_max_hold: float | None
    group_max_size: int | None
    hold_until: datetime | None
    unique_key: str | None = None
    on_expired: str | None = None
    ordering_key: str | None = None
    on_hold: str | None = None
    after: UUID | None = None
    sequence: int | None = None


class StateRow(NamedTuple):
    """The columns that events change.  ``suspect`` and ``held`` steer the claim indexes.

    A blocked job keeps the time it is due at in ``blocked_due``; its ``due_at`` never comes.
    """

    format: int
    version: int
    state: str
    due_at: datetime
    at: datetime
    suspect: bool
    held: bool
    starts: int
    attempts: int
    interruptions: int
    lease: int | None
    worker: str | None
    started_at: datetime | None
    items: tuple[str, ...]
    outcome: str | None
    blocked_by: UUID | None = None
    blocked_due: datetime | None = None
    effects: tuple[Effect, ...] = ()


Row: TypeAlias = tuple[SpecRow, StateRow]


def spec_row(spec: JobSpec) -> SpecRow:
    """The columns of a spec."""
    policy, group = spec.policy, spec.group
    return SpecRow(
        spec.id,
        spec.queue,
        spec.priority,
        spec.name,
        spec.args,
        spec.enqueued_at,
        policy.retries,
        policy.timeout,
        policy.lease,
        policy.on_exhausted,
        spec.label,
        spec.owner,
        spec.subject,
        spec.expires_at,
        spec.group_key,
        None if group is None else group.window,
        None if group is None else group.max_hold,
        None if group is None else group.max_size,
        spec.hold_until,
        spec.unique_key,
        None if policy.on_expired is OnExpired.RETRY else policy.on_expired,
        spec.ordering_key,
        None if spec.on_hold is OnHold.BLOCK else spec.on_hold,
        spec.after,
        spec.sequence,
    )


def format_of(job: Job) -> int:
    """The oldest layout that holds all there is to know of the job."""
    return FORMAT if job.effects else format_of_spec(job.spec)


def format_of_spec(spec: JobSpec) -> int:
    """The oldest layout that holds all there is to know of a new job."""
    ordered = spec.ordering_key is not None or spec.after is not None
    aborts = spec.policy.on_expired is OnExpired.ABORT
    return FORMAT if ordered or aborts else FORMAT_PLAIN


def state_row(job: Job) -> StateRow | None:
    """The columns of a state, None when the job's row leaves: it is finished and not held."""
    if job.state in ENDED and not job.held:
        return None
    lease = job.lease
    if lease is None:
        token, worker, started_at = None, None, None
    else:
        token, worker, started_at = lease.token, lease.worker, lease.started_at
    due, blocked_due = job.due_at, None
    if job.blocked_by is not None:
        due, blocked_due = NEVER, due
    return StateRow(
        format_of(job), job.version, job.state, due, job.at, is_suspect(job), job.held,
        job.starts, job.attempts, job.interruptions,
        token, worker, started_at, job.items, job.outcome,
        job.blocked_by, blocked_due, job.effects,
    )  # fmt: skip


def due_of(due_at: datetime, blocked_due: datetime | None) -> datetime:
    """When the job of a row is due.

    A blocked row whose time has been set since was moved by a release that knows of no blocks.
    """
    return due_at if blocked_due is None or due_at < NEVER else blocked_due


def to_row(job: Job) -> Row | None:
    """The row of a job, None when it has none."""
    state = state_row(job)
    return None if state is None else (spec_row(job.spec), state)


def from_row(spec: SpecRow, state: StateRow) -> Job:
    """The job that a row stands for."""
    group = None
    if spec.group_window is not None:
        assert spec.group_max_hold is not None
        assert spec.group_max_size is not None
        serial = spec.ordering_key is not None
        group = Group(spec.group_window, spec.group_max_hold, spec.group_max_size, serial)
    lease = None
    if state.lease is not None:
        assert state.worker is not None
        assert state.started_at is not None
        lease = Lease(state.lease, state.worker, state.started_at)
    return Job(
        JobSpec(
            spec.id,
            spec.name,
            spec.args,
            spec.enqueued_at,
            spec.queue,
            spec.priority,
            Policy(
                spec.retries,
                spec.timeout,
                spec.lease_seconds,
                OnExhausted(spec.on_exhausted),
                OnExpired(spec.on_expired or OnExpired.RETRY),
            ),
            spec.label,
            spec.owner,
            spec.subject,
            spec.expires_at,
            spec.group_key,
            group,
            spec.hold_until,
            spec.unique_key,
            spec.ordering_key,
            OnHold(spec.on_hold or OnHold.BLOCK),
            spec.after,
            spec.sequence,
        ),
        State(state.state),
        state.version,
        state.at,
        due_of(state.due_at, state.blocked_due),
        state.starts,
        state.attempts,
        state.interruptions,
        lease,
        tuple(state.items),
        state.effects,
        None if state.outcome is None else Outcome(state.outcome),
        state.held,
        state.blocked_by,
    )
