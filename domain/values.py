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


#: Failures that wait for an operator unless the job type drops them.
HOLDING = frozenset({Outcome.EXHAUSTED, Outcome.REJECTED, Outcome.LOST})


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


class OnConflict(StrEnum):
    """What an enqueue wants when an unfinished or held job has its unique key already."""

    REJECT = "reject"
    """Refuse the new one."""
    KEEP = "keep"
    """Leave the one that is there as it is, and take it for the new one."""
    REPLACE = "replace"
    """Give the one that is there, while it waits, the new one's start."""


class OnExhausted(StrEnum):
    """What a job type wants done with a job that failed for good."""

    HOLD = "hold"
    DROP = "drop"
