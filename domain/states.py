"""The six states of a job and every move between them.

The table is the promise of the whole library: what is not in it does not exist.  Each row names an
event and the states it may leave and enter; ``None`` stands for a job that is not there yet.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias


class State(StrEnum):
    """Where a job stands.  ``retry-wait`` is a queued job that waits for its next attempt."""

    QUEUED = "queued"
    GROUPED = "grouped"
    LEASED = "leased"
    RETRY_WAIT = "retry-wait"
    DONE = "done"
    FAILED = "failed"


WAITING = frozenset({State.QUEUED, State.GROUPED, State.RETRY_WAIT})
ENDED = frozenset({State.DONE, State.FAILED})
UNFINISHED = frozenset(State) - ENDED

Move: TypeAlias = tuple[State | None, State]

#: event kind -> the moves it may make
TRANSITIONS: MappingProxyType[str, frozenset[Move]] = MappingProxyType(
    {
        "enqueued": frozenset({(None, State.QUEUED), (None, State.GROUPED)}),
        "items_joined": frozenset({(State.GROUPED, State.GROUPED)}),
        "group_closed": frozenset({(State.GROUPED, State.QUEUED)}),
        "rescheduled": frozenset(
            {(State.QUEUED, State.QUEUED), (State.RETRY_WAIT, State.RETRY_WAIT)}
        ),
        "blocked": frozenset({(State.QUEUED, State.QUEUED), (State.RETRY_WAIT, State.RETRY_WAIT)}),
        "unblocked": frozenset(
            {
                (State.QUEUED, State.QUEUED),
                (State.RETRY_WAIT, State.RETRY_WAIT),
                (State.FAILED, State.QUEUED),
            }
        ),
        "leased": frozenset(
            {
                (State.QUEUED, State.LEASED),
                (State.GROUPED, State.LEASED),
                (State.RETRY_WAIT, State.LEASED),
            }
        ),
        "heartbeat": frozenset({(State.LEASED, State.LEASED)}),
        "effect_started": frozenset({(State.LEASED, State.LEASED)}),
        "effect_completed": frozenset({(State.LEASED, State.LEASED)}),
        "effect_released": frozenset({(State.LEASED, State.LEASED)}),
        "released": frozenset({(State.LEASED, State.QUEUED)}),
        "retry_scheduled": frozenset({(State.LEASED, State.RETRY_WAIT)}),
        "lease_expired": frozenset({(State.LEASED, State.QUEUED)}),
        "completed": frozenset({(State.LEASED, State.DONE)}),
        "failed": frozenset(
            {
                (State.LEASED, State.FAILED),
                (State.QUEUED, State.FAILED),
                (State.GROUPED, State.FAILED),
            }
        ),
    }
)
