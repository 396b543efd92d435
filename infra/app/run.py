"""What a handler knows of the run it is in."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog

from ...domain.job import Job
from .logs import get_logger

_log = get_logger("leasebook.handler")


class Run:
    """One run of one job, made by the worker for the handler.

    ``stopping`` becomes True when the worker was asked to stop, ``lost`` when the lease was lost:
    from then on nothing that this run does or returns is recorded, so a handler that loops should
    look at both now and then.  (An ``async def`` handler is cancelled as well.)
    """

    __slots__ = ("_log", "job", "lost", "stopping")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.lost = False
        self.stopping = False
        self._log: structlog.stdlib.BoundLogger | None = None

    @property
    def job_id(self) -> UUID:
        """The public id of the job, a UUIDv7: the same in every run."""
        return self.job.spec.id

    @property
    def name(self) -> str:
        """The registered name of the job type."""
        return self.job.spec.name

    @property
    def queue(self) -> str:
        """The queue that the job stands in."""
        return self.job.spec.queue

    @property
    def attempt(self) -> int:
        """Which counted run this is, from 1; snoozes and releases do not count."""
        return self.job.attempts + 1

    @property
    def start(self) -> int:
        """Which start of the job this is, from 1; every lease counts."""
        return self.job.starts

    @property
    def label(self) -> str | None:
        """The label given at enqueue, or by the job type."""
        return self.job.spec.label

    @property
    def owner(self) -> str | None:
        """Whose job it is, as given at enqueue."""
        return self.job.spec.owner

    @property
    def subject(self) -> str | None:
        """What the job is about, as given at enqueue."""
        return self.job.spec.subject

    @property
    def deadline(self) -> datetime:
        """When the time-out of this run ends, by the database's clock."""
        deadline = self.job.deadline
        assert deadline is not None, "a run has a leased job"
        return deadline

    @property
    def worker(self) -> str:
        """The id of the worker that runs it; a restarted worker has another."""
        lease = self.job.lease
        assert lease is not None, "a run has a leased job"
        return lease.worker

    @property
    def log(self) -> structlog.stdlib.BoundLogger:
        """A logger named ``leasebook.handler`` that carries job id, name and attempt."""
        if self._log is None:
            self._log = _log.bind(job=str(self.job_id), name=self.name, attempt=self.attempt)
        return self._log

    def __repr__(self) -> str:
        return f"<Run of {self.name} {self.job_id}, attempt {self.attempt}>"
