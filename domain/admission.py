"""Which of the picked jobs a worker may start.

A job whose run was interrupted may be what killed its worker.  Such a suspect starts alone among
suspects: a worker admits one at a time until it has lived for a while.  So a job that kills its
worker, once it has done so, takes no other suspect with it, and innocent bystanders of the first
crash do not pay a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from .job import Job

#: A suspect that has run this long no longer keeps other suspects from starting.
SUSPECT_SECONDS_DEFAULT = 2.0


def is_suspect(job: Job) -> bool:
    """Whether an earlier run of this job was interrupted."""
    return job.interruptions > 0


def suspects_allowed(
    running: Iterable[Job], at: datetime, suspect_seconds: float = SUSPECT_SECONDS_DEFAULT
) -> int:
    """How many suspects may start beside the ``running`` jobs: 1, or 0 while a young one runs."""
    young = at - timedelta(seconds=suspect_seconds)
    for job in running:
        if is_suspect(job) and job.lease is not None and job.lease.started_at > young:
            return 0
    return 1


def admit(picked: Sequence[Job], slots: int, suspects: int) -> tuple[Job, ...]:
    """The jobs to lease, in claim order: at most ``slots``, at most ``suspects`` suspects."""
    admitted: list[Job] = []
    for job in picked:
        if len(admitted) >= slots:
            break
        if is_suspect(job):
            if suspects <= 0:
                continue
            suspects -= 1
        admitted.append(job)
    return tuple(admitted)
