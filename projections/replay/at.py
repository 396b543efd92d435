"""The state of a job, and of the whole queue, as of any moment or version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from ...domain.job import Job
from ...domain.log import Recorded
from ...domain.states import ENDED
from ..streams import Step, Stream, by_job, steps

HELD = "held"


def job_at(
    stream: Sequence[Recorded], at: datetime | None = None, version: int | None = None
) -> Job | None:
    """The job as of a moment, a version or both; None when it was not there yet.

    Events of that very moment have happened.  Also None for a stream that lacks its birth.
    """
    life = steps(until(stream, at, version))
    return life[-1].after if life else None


def until(
    stream: Sequence[Recorded], at: datetime | None = None, version: int | None = None
) -> Stream:
    """The beginning of a stream, up to a moment and a version."""
    return tuple(
        recorded
        for recorded in stream
        if (at is None or recorded.at <= at) and (version is None or recorded.version <= version)
    )


def queue_at(log: Iterable[Recorded], at: datetime) -> Iterator[Job]:
    """Every job that was there at that moment, ended ones included, in the order of the log."""
    for stream in by_job(log):
        job = job_at(stream, at)
        if job is not None:
            yield job


def standing(job: Job) -> str:
    """Where a job stands: its state, or ``held`` for one that waits for an operator."""
    return HELD if job.held else job.state.value


def is_open(job: Job) -> bool:
    """Whether somebody still has to do something about it: it is unfinished, or held."""
    return job.held or job.state not in ENDED


def tally(jobs: Iterable[Job]) -> dict[tuple[str, str], int]:
    """How many jobs stand where, by queue and standing."""
    return dict(Counter((job.spec.queue, standing(job)) for job in jobs))


def concerns(life: Sequence[Step], since: datetime) -> bool:
    """Whether a life has to do with the time from ``since`` on.

    It has when something happened to it then, or when it was open at that moment.
    """
    last = life[-1]
    return last.recorded.at >= since or is_open(last.after)
