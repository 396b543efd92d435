"""The four words in which a job's state is told to those who do not operate the queue."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from ..domain.states import State


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


def status(state: State) -> Status:
    """The public status of a job in ``state``, whatever its outcome."""
    return STATUSES[state]
