"""The small closed vocabularies that events, commands and rows share."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

#: A JSON document as text.  The domain carries it and never looks inside.
Json: TypeAlias = str


class Outcome(StrEnum):
    """How a job ended."""

    DONE = "done"
    SKIPPED = "skipped"
    EXHAUSTED = "exhausted"
    """Every counted run failed."""
    REJECTED = "rejected"
    """The handler said that another run is of no use."""
    LOST = "lost"
    """The last counted run was interrupted: its lease ended, its worker died or it timed out."""
    EXPIRED = "expired"
    """The job was still waiting when its ``expires_at`` came."""
    ABORTED = "aborted"
    """The run was interrupted, and this type of job is not run again by itself."""
    UNCERTAIN = "uncertain"
    """An effect outside was begun, and nobody knows what came of it."""
    PARENT_FAILED = "parent_failed"
    """The job that this one comes after has failed."""


#: Failures that wait for an operator unless the job type drops them.
HOLDING = frozenset({Outcome.EXHAUSTED, Outcome.REJECTED, Outcome.LOST})
#: Failures that wait for an operator whatever the job type says.
ALWAYS_HELD = frozenset({Outcome.UNCERTAIN, Outcome.PARENT_FAILED})


class ExpiryCause(StrEnum):
    """Why a lease ended without an answer."""

    LEASE_ENDED = "lease_ended"
    WORKER_LOST = "worker_lost"
    TIMED_OUT = "timed_out"


class ReleaseReason(StrEnum):
    """Why a worker gave a leased job back.  None of these spends an attempt."""

    SHUTDOWN = "shutdown"
    SNOOZE = "snooze"
    OUTAGE = "outage"
    RATE_LIMITED = "rate_limited"
    NEVER_STARTED = "never_started"


class CloseReason(StrEnum):
    """Why a group takes no more items."""

    FULL = "full"
    FLUSHED = "flushed"
    BLOCKED = "blocked"


class OnConflict(StrEnum):
    """What an enqueue wants when an unfinished or held job has its unique key already."""

    REJECT = "reject"
    """Refuse the new one."""
    KEEP = "keep"
    """Leave the one that is there as it is, and take it for the new one."""
    REPLACE = "replace"
    """Give the one that is there, while it waits, the new one's start."""


class OnExpired(StrEnum):
    """What it means that a run was interrupted: by its lease, its worker, its time-out, a stop."""

    RETRY = "retry"
    """The job runs again while its budget lasts."""
    ABORT = "abort"
    """The job fails, is not held and never runs again by itself."""


class OnHold(StrEnum):
    """What a held job means for the later jobs of its ordering key."""

    BLOCK = "block"
    """They wait until it is retried or discarded."""
    SKIP = "skip"
    """They go on without it."""


class EffectKind(StrEnum):
    """What kind of effect a receipt stands for."""

    CALL = "call"
    """A request to something outside, which may have been heard although no answer came."""
    MUTATION = "mutation"
    """A change in this database, committed together with its receipt."""
    SNAPSHOT = "snapshot"
    """A decision that later runs keep."""


class OnExhausted(StrEnum):
    """What a job type wants done with a job that failed for good."""

    HOLD = "hold"
    DROP = "drop"
