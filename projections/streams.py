"""The log cut into lives: one stream for each job, one step for each event.

Everything here asks for ``Recorded`` events grouped by job and in order of version, as the primary
key of the log gives them, and holds no more than one stream at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from attrs import evolve as replace
from attrs import frozen

from ..domain.events import Enqueued
from ..domain.evolve import evolve
from ..domain.job import Job
from ..domain.log import Recorded

Stream: TypeAlias = tuple[Recorded, ...]
#: What breaks a rule: a text for people, and the fewest events that show it.
Finding: TypeAlias = tuple[str, tuple[Recorded, ...]]


@frozen
class Step:
    """One event with the job before it (None: not there yet) and after it."""

    before: Job | None
    recorded: Recorded
    after: Job


def by_job(log: Iterable[Recorded]) -> Iterator[Stream]:
    """The streams of a log, one after the other, none of them empty."""
    for _, stream in groupby(log, key=lambda recorded: recorded.job_id):
        yield tuple(stream)


def steps(stream: Sequence[Recorded]) -> tuple[Step, ...]:
    """The steps of one life, none when it does not begin with its birth.

    A fold counts versions by itself.  Here they are taken from the log, so that one missing event
    of a damaged stream does not make every later lease token look wrong.
    """
    if not stream or not isinstance(stream[0].event, Enqueued):
        return ()
    made: list[Step] = []
    job: Job | None = None
    for recorded in stream:
        before = job
        job = evolve(before, recorded.event)
        if job.version != recorded.version:
            job = _renumbered(job, recorded.version)
        made.append(Step(before, recorded, job))
    return tuple(made)


def _renumbered(job: Job, version: int) -> Job:
    lease = job.lease
    if lease is not None and lease.token == job.version:
        lease = replace(lease, token=version)
    return replace(job, version=version, lease=lease)
