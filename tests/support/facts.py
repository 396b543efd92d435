"""Lines of the audit log for pure tests."""

from __future__ import annotations

from typing import Any

from leasebook.projections.replay.facts import AuditLine

from .lives import Life, at, job_id


def line(seconds: float, kind: str, worker: str | None = None, **detail: Any) -> AuditLine:
    """A line of any kind."""
    return AuditLine(at(seconds), kind, detail, None, worker)


def started(
    seconds: float,
    worker: str = "w1",
    capacity: int = 1,
    queues: tuple[str, ...] = ("default",),
    names: tuple[str, ...] | None = None,
) -> AuditLine:
    """A worker reported for work; without ``names`` as an older release did."""
    detail: dict[str, Any] = {"name": worker, "capacity": capacity, "queues": list(queues)}
    if names is not None:
        detail["names"] = list(names)
    return AuditLine(at(seconds), "worker_started", detail, None, worker)


def stopped(seconds: float, worker: str = "w1") -> AuditLine:
    """A worker stopped cleanly."""
    return line(seconds, "worker_stopped", worker)


def died(seconds: float, worker: str = "w1") -> AuditLine:
    """A worker was found dead."""
    return line(seconds, "worker_died", worker, noticed_by="w9")


def refused(seconds: float, number: int, lease: int, worker: str = "w1") -> AuditLine:
    """The late result of a run of a job was refused."""
    detail = {"answer": "Returned", "lease": lease, "current": None, "name": "sync_page"}
    return AuditLine(at(seconds), "late_write_refused", detail, job_id(number), worker)


def log(*lives: Life) -> list[Any]:
    """The events of lives, grouped by job."""
    return [recorded for life in lives for recorded in life.stream]
