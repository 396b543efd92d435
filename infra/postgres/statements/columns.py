"""The columns that several statements share, in one order."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill

LINE_CHARS = 96

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
    "unique_key",
    "on_expired",
    "ordering_key",
    "on_hold",
    "after",
    "sequence",
)

#: Written by every event, in the order of ``projections.row.StateRow``.
STATE = (
    "format",
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
    "blocked_by",
    "blocked_due",
    "effects",
)

#: What a job is read from, in the order in which ``rows.job_of`` takes it.
JOB = (*SPEC, *(name for name in STATE if name not in ("format", "suspect")))

#: One event, in the order of ``codec.EventRow``.
EVENT = ("kind", "at", "due_at", "lease", "worker", "data")

#: Which rows a worker may take; the literal predicates of the partial claim indexes.
WAITING = "state <> 'leased' and not held and not suspect"
SUSPECT = "state <> 'leased' and not held and suspect"


def job_columns(alias: str) -> str:
    """``JOB`` of one table alias."""
    return wrapped([f"{alias}.{name}" for name in JOB], indent=7)


def wrapped(parts: Iterable[str], indent: int) -> str:
    """A list of columns or values, in lines that a reader of the statement can take in."""
    lines = fill(", ".join(parts).replace(" ", "\0").replace(",\0", ", "), LINE_CHARS - indent)
    return lines.replace("\0", " ").replace("\n", "\n" + " " * indent)
