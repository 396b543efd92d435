"""What a log adds up to: the numbers of a demonstration or of an incident."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import pairwise

from attrs import frozen

from ..domain.events import (
    Completed,
    Failed,
    ItemsJoined,
    Leased,
    LeaseExpired,
    Released,
    RetryScheduled,
)
from ..domain.job import Job
from ..domain.log import Recorded
from ..domain.states import ENDED
from ..domain.values import Outcome, ReleaseReason
from .streams import Step, Stream, by_job, steps


@frozen
class Summary:
    """Counts over a log; times are seconds.

    ``runs`` counts leases.  ``runs_saved`` is what grouping spared: the items of completed groups
    less those groups.  ``leases_lost`` ended without an answer, and ``lost_runs_repeated`` of them
    were followed by another start.  ``start_median`` and ``start_max`` are the time from being due
    to a start, over all starts, None when nothing started.
    """

    jobs: int
    events: int
    runs: int
    groups: int
    items: int
    items_completed: int
    runs_saved: int
    retries: int
    released: Mapping[ReleaseReason, int]
    leases_lost: int
    lost_runs_repeated: int
    ended: Mapping[Outcome, int]
    unfinished: int
    held: int
    start_median: float | None
    start_max: float | None

    @property
    def completed(self) -> int:
        """Jobs that ended well, done or skipped."""
        return self.ended.get(Outcome.DONE, 0) + self.ended.get(Outcome.SKIPPED, 0)

    @property
    def failed(self) -> int:
        """Jobs that ended otherwise, whatever the outcome."""
        return sum(self.ended.values()) - self.completed

    @property
    def aborted(self) -> int:
        """Jobs that were interrupted, and are of a type that is not run again then."""
        return self.ended.get(Outcome.ABORTED, 0)

    @property
    def rate_limited(self) -> int:
        """Runs that were given back because of a rate limit."""
        return self.released.get(ReleaseReason.RATE_LIMITED, 0)


def summarise(log: Iterable[Recorded]) -> Summary:
    """The summary of a log grouped by job; a stream without its birth counts its events only."""
    seen: Counter[str] = Counter()
    released: Counter[ReleaseReason] = Counter()
    ended: Counter[Outcome] = Counter()
    waits = array("d")
    for stream in by_job(log):
        seen["jobs"] += 1
        seen["events"] += len(stream)
        seen["lost_runs_repeated"] += _repeated(stream)
        life = steps(stream)
        for step in life:
            _count(step, seen, released, waits)
        if life:
            _count_end(life[-1].after, seen, ended)
    ordered = sorted(waits)
    return Summary(
        jobs=seen["jobs"],
        events=seen["events"],
        runs=len(waits),
        groups=seen["groups"],
        items=seen["items"],
        items_completed=seen["items_completed"],
        runs_saved=seen["items_completed"] - seen["groups_completed"],
        retries=seen["retries"],
        released=dict(released),
        leases_lost=seen["leases_lost"],
        lost_runs_repeated=seen["lost_runs_repeated"],
        ended=dict(ended),
        unfinished=seen["unfinished"],
        held=seen["held"],
        start_median=_median(ordered),
        start_max=ordered[-1] if ordered else None,
    )


def _count(
    step: Step, seen: Counter[str], released: Counter[ReleaseReason], waits: array[float]
) -> None:
    event, before = step.recorded.event, step.before
    match event:
        case ItemsJoined():
            seen["items"] += len(event.items)
        case Leased() if before is not None:
            waits.append((event.at - before.due_at).total_seconds())
        case Released():
            released[event.reason] += 1
        case RetryScheduled():
            seen["retries"] += 1
        case LeaseExpired():
            seen["leases_lost"] += 1
        case Failed(outcome=Outcome.LOST):
            seen["leases_lost"] += 1
        case Completed():
            if step.after.spec.group is not None:
                seen["groups_completed"] += 1
                seen["items_completed"] += len(step.after.items)
        case _:
            pass


def _count_end(job: Job, seen: Counter[str], ended: Counter[Outcome]) -> None:
    seen["groups"] += job.spec.group is not None
    seen["held"] += job.held
    if job.state not in ENDED:
        seen["unfinished"] += 1
    elif job.outcome is not None:
        ended[job.outcome] += 1


def _repeated(stream: Stream) -> int:
    """Lost leases after which the job was started again: nothing stands between the two."""
    return sum(
        isinstance(lost.event, LeaseExpired) and isinstance(again.event, Leased)
        for lost, again in pairwise(stream)
    )


def _median(ordered: list[float]) -> float | None:
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def worst(
    log: Iterable[Recorded], preferred: Callable[[Stream], bool] | None = None
) -> Stream | None:
    """The stream of the job that suffered most, None for an empty log.

    That is the one with the most starts; among equals the one that took longest from birth to its
    newest event; then the one that stands first in the log.  One that is ``preferred`` goes before
    all that are not.
    """
    found: Stream | None = None
    most = (False, -1, timedelta.min)
    for stream in by_job(log):
        starts = sum(isinstance(recorded.event, Leased) for recorded in stream)
        first = preferred is not None and preferred(stream)
        suffered = (first, starts, stream[-1].at - stream[0].at)
        if suffered > most:
            found, most = stream, suffered
    return found


def interrupted(stream: Stream) -> bool:
    """Whether a run of the job ended without an answer, as when its worker was killed."""
    return any(isinstance(recorded.event, LeaseExpired) for recorded in stream)
