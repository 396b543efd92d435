"""When a worker renews, waits, backs off and stops.

Nothing here reads a clock: instants arrive as arguments, aware datetimes for what the database
decides and monotonic seconds for what a process observes by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import define, field

from .frozen import frozen
from .job import Job

BACKOFF_SECONDS_FIRST = 0.125
BACKOFF_SECONDS_MAX = 30.0


def backoff(failures: int) -> float:
    """Seconds to wait after ``failures`` failures in a row: 0.125, 0.25, 0.5 … at most 30."""
    if failures <= 0:
        return 0.0
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2.0 ** min(failures - 1, 10))


def renew_until(job: Job, at: datetime) -> datetime | None:
    """The lease end to ask for now, or None while there is no need or no right to more.

    A lease is renewed when less than half its term is left, and never past the time-out of its run.
    """
    deadline = job.deadline
    if deadline is None:
        return None
    term = timedelta(seconds=job.spec.policy.lease)
    if job.due_at - at > term / 2:
        return None
    until = min(at + term, deadline)
    return until if until > job.due_at else None


@frozen
class Sighting:
    """How an observer last saw a worker change: its beat count and the monotonic second."""

    beats: int
    since: float


@define
class Observer:
    """Tells who is dead, by watching and not by comparing clocks.

    A worker is dead when this observer has itself beaten without a gap for ``dead_after`` seconds
    and the other's beat counter did not move in all that time.  (Timestamps alone fail: after an
    outage of the database the first worker back would declare all others dead.)
    """

    dead_after: float
    _seen: dict[str, Sighting] = field(factory=dict[str, Sighting])
    _own_since: float | None = None
    _own_last: float | None = None

    def beaten(self, now: float) -> None:
        """The observer's own heartbeat went through at monotonic second ``now``.

        A gap longer than half of ``dead_after`` starts the watch anew.  (Beats come three times in
        ``dead_after``, in practice a little later: a gap must be clearly longer than one beat.)
        """
        if self._gap(now):
            self._own_since = now
            self._seen.clear()
        self._own_last = now

    def dead(self, beats: dict[str, int], now: float) -> list[str]:
        """Who among ``beats`` (worker -> beat count) is dead at monotonic second ``now``."""
        self._seen = {
            worker: seen
            if (seen := self._seen.get(worker)) is not None and seen.beats == count
            else Sighting(count, now)
            for worker, count in beats.items()
        }
        since = self._own_since
        if since is None or now - since < self.dead_after or self._gap(now):
            return []
        return sorted(
            worker for worker, seen in self._seen.items() if now - seen.since >= self.dead_after
        )

    def _gap(self, now: float) -> bool:
        return self._own_last is None or now - self._own_last > self.dead_after / 2
