"""The four words in which a job's state is told to those who do not operate the queue."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from attrs import frozen

from ..domain.job import Job
from ..domain.states import ENDED, State
from ..domain.values import Outcome


class Status(StrEnum):
    """How a job stands for the public."""

    QUEUED = "queued"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


#: A job whose lease has ended is processing until somebody says so; one that waits for a retry has
#: not failed.
STATUSES: MappingProxyType[State, Status] = MappingProxyType(
    {
        State.QUEUED: Status.QUEUED,
        State.GROUPED: Status.QUEUED,
        State.RETRY_WAIT: Status.QUEUED,
        State.LEASED: Status.PROCESSING,
        State.DONE: Status.SUCCEEDED,
        State.FAILED: Status.FAILED,
    }
)
_ENDS = {STATUSES[state]: state for state in ENDED}


def status(state: State) -> Status:
    """The public status of a job in ``state``, whatever its outcome."""
    return STATUSES[state]


def end_of(found: str | None) -> State | None:
    """The state of a job of which this status was kept when it ended; None for None."""
    return None if found is None else _ENDS[Status(found)]


@frozen
class Summary:
    """How a job ended: what is known of it when its stream was pruned."""

    job_id: UUID
    status: Status
    outcome: Outcome
    name: str
    owner: str | None
    at: datetime

    def __str__(self) -> str:
        return f"it {self.status} ({self.outcome}) at {self.at.isoformat(timespec='seconds')}"


def summary(job: Job) -> Summary | None:
    """How a job ended, None when it goes on or is held: then it may still end otherwise."""
    if job.state not in ENDED or job.held:
        return None
    assert job.outcome is not None, "what has ended has an outcome"
    spec = job.spec
    return Summary(job.id, status(job.state), job.outcome, spec.name, spec.owner, job.at)
