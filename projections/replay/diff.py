"""What changed between two moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from attrs import frozen

from ...domain.job import Job
from ...domain.log import Recorded
from ..streams import by_job
from .at import job_at, standing

#: Where a job stands that is not there yet.
ABSENT = "absent"


@frozen
class Changed:
    """A job to which something happened between two moments; ``before`` is None for a new one."""

    before: Job | None
    after: Job

    @property
    def moved(self) -> tuple[str, str]:
        """Where it stood before and after; the same word twice for one that came back."""
        return ABSENT if self.before is None else standing(self.before), standing(self.after)


def diff(log: Iterable[Recorded], earlier: datetime, later: datetime) -> Iterator[Changed]:
    """The jobs with an event after ``earlier`` and not after ``later``, in the order of the log."""
    for stream in by_job(log):
        if stream[-1].at <= earlier:
            continue
        before, after = job_at(stream, earlier), job_at(stream, later)
        if after is not None and (before is None or before.version != after.version):
            yield Changed(before, after)


def moves(changes: Iterable[Changed]) -> dict[tuple[str, str, str], int]:
    """How many jobs of a queue moved from where to where: (queue, before, after) -> jobs."""
    counted = Counter((each.after.spec.queue, *each.moved) for each in changes)
    return dict(sorted(counted.items()))
