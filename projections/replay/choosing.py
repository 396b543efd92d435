"""Which jobs, runs and moments somebody asks about."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from attrs import frozen

from ...domain.job import JobSpec
from .runs import Run


@frozen
class Choice:
    """What is asked about; None chooses everything.

    ``key`` is a unique or an ordering key, ``group`` a group key, ``worker`` an id or the name
    before its ``#``.  ``since`` and ``until`` belong to the window, both ends included.
    """

    since: datetime | None = None
    until: datetime | None = None
    queue: str | None = None
    name: str | None = None
    key: str | None = None
    group: str | None = None
    worker: str | None = None
    job: UUID | None = None

    @property
    def every_job(self) -> bool:
        """Whether no job is left out, whatever its runs and the window."""
        asked = (self.queue, self.name, self.key, self.group, self.job)
        return all(each is None for each in asked)

    def of_job(self, spec: JobSpec) -> bool:
        """Whether a job is among those asked about, whatever happened to it."""
        asked = (self.queue, self.name, self.group, self.job)
        has = (spec.queue, spec.name, spec.group_key, spec.id)
        same = all(want is None or want == got for want, got in zip(asked, has, strict=True))
        return same and (self.key is None or self.key in (spec.unique_key, spec.ordering_key))

    def of_worker(self, worker: str | None) -> bool:
        """Whether a worker is, None being nobody."""
        if self.worker is None:
            return True
        return worker is not None and self.worker in (worker, worker.rpartition("#")[0])

    def within(self, at: datetime | None) -> bool:
        """Whether a moment is in the window."""
        if at is None:
            return False
        after = self.since is None or at >= self.since
        return after and (self.until is None or at <= self.until)

    def of_run(self, run: Run) -> bool:
        """Whether a run touches the window and is of the worker asked about."""
        begins = self.until is None or run.began <= self.until
        ends = self.since is None or run.ended is None or run.ended >= self.since
        return begins and ends and self.of_worker(run.worker)
