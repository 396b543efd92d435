"""Why a job started late: each wait cut into segments that sum exactly to schedule-to-start.

What a job waited for by plan stands in its stream.  Once it was ready, the facts about workers and
the other starts decide, see ``Cause``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from attrs import frozen

from ...domain.log import Recorded
from ..streams import Step, by_job, steps
from .ahead import Ahead
from .capacity import Capacity
from .clock import micros, moment
from .facts import Between, Facts
from .runs import runs_of
from .stints import Stints
from .waiting import Cause, Pending, Piece, waits_of


@frozen
class Segment:
    """``microseconds`` of a wait for one cause; ``by`` is the job that it was blocked by."""

    cause: Cause
    microseconds: int
    by: UUID | None = None


@frozen
class Wait:
    """One wait of a job, from the event that made it wait to its start.

    ``started`` and ``worker`` are None for a wait that was not over at the end of the window.  The
    segments, no two alike, are in the order of ``Cause`` and sum to ``microseconds``.
    """

    job_id: UUID
    name: str
    queue: str
    version: int
    start: int
    worker: str | None
    since: datetime
    started: datetime | None
    microseconds: int
    segments: tuple[Segment, ...]

    def of(self, cause: Cause) -> int:
        """Microseconds for one cause."""
        return sum(each.microseconds for each in self.segments if each.cause is cause)


def waits(
    log: Iterable[Recorded],
    facts: Facts,
    until: datetime | None = None,
    known_from: datetime | None = None,
) -> Iterator[Wait]:
    """The wait before every start of a log and, given ``until``, those that go on then.

    The whole log up to ``until`` is read before the first answer.  Before ``known_from`` nothing is
    known about workers.  A stream without its birth has no waits.
    """
    pending: list[Pending] = []
    stints = Stints()
    for stream in by_job(log):
        life = steps(stream)
        if life:
            pending += waits_of(life, until)
            add_runs(stints, life)
    explain = _Explainer(facts, stints, pending, known_from)
    del stints
    for each in pending:
        yield explain.wait(each)


def add_runs(stints: Stints, life: Sequence[Step]) -> None:
    """Add the runs of one life."""
    for run in runs_of(life):
        ended = None if run.ended is None else micros(run.ended)
        stints.add(run.worker, run.queue, micros(run.began), ended)


class _Explainer:
    """Explains ready stretches by what is known of workers, pauses and other starts."""

    def __init__(
        self,
        facts: Facts,
        stints: Stints,
        pending: Sequence[Pending],
        known_from: datetime | None,
    ) -> None:
        self.facts = facts
        self.capacity = Capacity(facts, stints)
        self.known_from = None if known_from is None else micros(known_from)
        self.ahead = Ahead(facts.workers, pending)

    def wait(self, pending: Pending) -> Wait:
        """The wait with all its segments."""
        spent: dict[tuple[Cause, UUID | None], int] = {}
        for piece in pending.pieces:
            for cause, by, length in self._explained(pending, piece):
                if length:
                    spent[cause, by] = spent.get((cause, by), 0) + length
        order = list(Cause)
        segments = [Segment(cause, length, by) for (cause, by), length in spent.items()]
        segments.sort(key=lambda each: order.index(each.cause))
        length = pending.pieces[-1].until - pending.since if pending.pieces else 0
        return Wait(
            pending.job_id,
            pending.name,
            pending.queue,
            pending.version,
            pending.start,
            pending.worker,
            moment(pending.since),
            None if pending.started is None else moment(pending.started),
            length,
            tuple(segments),
        )

    def _explained(
        self, pending: Pending, piece: Piece
    ) -> Iterator[tuple[Cause, UUID | None, int]]:
        if piece.cause is not None:
            yield piece.cause, piece.by, piece.until - piece.since
            return
        pauses = self.facts.paused.get(pending.queue, ())
        for paused, since, until in without_pauses(pauses, piece.since, piece.until):
            if paused:
                yield Cause.PAUSED, None, until - since
                continue
            known = since if self._is_known(pending) else until
            if self.known_from is not None:
                known = min(max(known, self.known_from), until)
            yield Cause.UNKNOWN, None, known - since
            yield from self._by_capacity(pending, known, until)

    def _by_capacity(
        self, pending: Pending, since: int, until: int
    ) -> Iterator[tuple[Cause, None, int]]:
        queue = pending.queue
        none, unhandled, busy, free = self.capacity.split(queue, pending.name, since, until)
        yield Cause.NO_WORKER, None, none
        yield Cause.NO_HANDLER, None, unhandled
        yield Cause.BUSY, None, busy
        last = self.ahead.last(pending, since, until) if free else None
        behind = 0 if last is None else self.capacity.split(queue, pending.name, since, last).free
        yield Cause.BEHIND, None, behind
        yield Cause.DISPATCH, None, free - behind

    def _is_known(self, pending: Pending) -> bool:
        """A worker of whose start nothing is known took it: then others may be missing as well."""
        return pending.worker is None or pending.worker in self.facts.workers


def without_pauses(
    pauses: Iterable[Between], since: int, until: int
) -> Iterator[tuple[bool, int, int]]:
    """A stretch cut at the pauses of its queue: whether paused, since, until."""
    for began, ended in pauses:
        start = max(since, micros(began))
        end = until if ended is None else min(until, micros(ended))
        if start < end:
            yield False, since, start
            yield True, start, end
            since = end
    yield False, since, until
