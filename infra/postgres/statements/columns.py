"""The columns that several statements share, in one order."""

from __future__ import annotations

#: Written once, when a job is born, in the order of ``projections.row.SpecRow``.
SPEC = (
    "id",
    "queue",
    "priority",
    "name",
    "args",
    "enqueued_at",
    "retries",
    "timeout",
    "lease_seconds",
    "on_exhausted",
    "label",
    "owner",
    "subject",
    "expires_at",
    "group_key",
    "group_window",
    "group_max_hold",
    "group_max_size",
    "hold_until",
)

#: Written by every event, in the order of ``projections.row.StateRow``.
STATE = (
    "version",
    "state",
    "due_at",
    "at",
    "suspect",
    "held",
    "starts",
    "attempts",
    "interruptions",
    "lease",
    "worker",
    "started_at",
    "items",
    "outcome",
)

#: What a job is read from, in the order in which ``rows.job_of`` takes it.
JOB = (*SPEC, *(name for name in STATE if name != "suspect"))

#: One event, in the order of ``codec.EventRow``.
EVENT = ("kind", "at", "due_at", "lease", "worker", "data")

#: Which rows a worker may take; the literal predicates of the partial claim indexes.
WAITING = "state <> 'leased' and not held and not suspect"
SUSPECT = "state <> 'leased' and not held and suspect"


def job_columns(alias: str) -> str:
    """``JOB`` of one table alias, several to a line."""
    lines = [JOB[start : start + 7] for start in range(0, len(JOB), 7)]
    return ",\n       ".join(", ".join(f"{alias}.{name}" for name in line) for line in lines)
