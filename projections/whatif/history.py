"""What a log says of arrivals, run times, failures and of what dispatch took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from attrs import evolve as replace
from attrs import field, frozen

from ...domain import events as e
from ...domain.commands import Item
from ...domain.job import Job, JobSpec
from ...domain.log import Recorded
from ..replay.facts import Facts


@frozen
class Taken:
    """One recorded run.

    ``noise`` is for how long it had been ready beside a free slot: first, and after each job that
    it was blocked by, for whose end it waited ``lags`` longer.  ``length`` is how long it ran, all
    in microseconds; ``length`` and ``end`` are None when it went on at the end of the window.
    """

    worker: str
    began: datetime
    noise: tuple[int, ...]
    lags: tuple[int, ...]
    length: int | None
    end: e.Event | None


@frozen
class Source:
    """A recorded job: what it was, and its runs in the window.

    ``patience`` is for how long, in microseconds, it had been ready beside a free slot at the end
    of the window, None when it was not waiting then.
    """

    spec: JobSpec
    seq: int
    runs: tuple[Taken, ...]
    patience: tuple[int, ...] | None = None


@frozen
class Birth:
    """A job without a group was accepted."""

    at: datetime
    source: Source
    due_at: datetime
    behind: UUID | None


@frozen
class Collected:
    """Items of one key were taken out of the inbox together, each with the job that it went to."""

    at: datetime
    items: tuple[tuple[Item, Source], ...]


@frozen
class Moved:
    """A waiting job was moved to another time."""

    at: datetime
    job_id: UUID
    due_at: datetime


@frozen
class Carried:
    """A job that was there when the window began: its life before, and its run then.

    ``blocks`` counts the jobs that it had been blocked by since it last ran.
    """

    before: tuple[Recorded, ...]
    job: Job
    source: Source
    running: Taken | None
    blocks: int = 0


@frozen
class History:
    """Everything that is the same under any policy, and what is usual for a name.

    No number of an event is above ``seq_max``.
    ``noise`` and ``lengths`` are medians in microseconds; ``recovery`` is the share of later runs
    of a job that were completed.
    """

    since: datetime
    until: datetime
    facts: Facts
    births: Sequence[Birth]
    collected: Sequence[Collected]
    moved: Sequence[Moved]
    carried: Sequence[Carried]
    seq_max: int = 0
    noise: Mapping[str, int] = field(factory=dict[str, int])
    lengths: Mapping[str, int] = field(factory=dict[str, int])
    recovery: Mapping[str, float] = field(factory=dict[str, float])

    @property
    def specs(self) -> list[JobSpec]:
        """The specs of all that came."""
        born = [each.source.spec for each in self.births]
        items = [source.spec for each in self.collected for _, source in each.items]
        return [*born, *items, *(each.job.spec for each in self.carried)]


def worst(sources: Iterable[Source]) -> Source:
    """Of the jobs that the items of a group had gone to, the one that had most trouble."""
    return max(sources, key=lambda each: (len(each.runs), _first_length(each), -each.seq))


def _first_length(source: Source) -> int:
    return (source.runs[0].length or 0) if source.runs else 0


def carried_spec(job: Job, spec: JobSpec) -> Job:
    """A job that was there already, under another policy; the hold of a group stays."""
    return replace(job, spec=replace(spec, hold_until=job.spec.hold_until))
