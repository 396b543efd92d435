"""The runs of a job: from a lease to what ended it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from attrs import frozen

from ...domain import events as e
from ...domain.log import Recorded
from ...domain.states import State
from ...domain.values import Outcome
from ..streams import Step, by_job, steps

RUNNING = "running"
#: How a job ends whose last run, or whose only one, was interrupted; the log says so besides.
INTERRUPTED = frozenset({Outcome.LOST, Outcome.ABORTED})


@frozen
class Run:
    """One lease of one job.

    ``end`` is the kind of the event that ended it, ``why`` its outcome, reason or cause, both as
    the log has them; of a run that is not over ``ended`` is None and ``end`` is ``running``.
    """

    job_id: UUID
    name: str
    queue: str
    token: int
    start: int
    worker: str
    began: datetime
    ended: datetime | None
    end: str
    why: str | None = None
    error: str | None = None
    cause: str | None = None

    @property
    def lost(self) -> bool:
        """Whether it was interrupted: its lease ended without an answer."""
        if self.end != "failed":
            return self.end == "lease_expired"
        return self.cause is not None or self.why in INTERRUPTED


def runs(log: Iterable[Recorded]) -> Iterator[Run]:
    """Every run of a log, job by job; a stream without its birth has none."""
    for stream in by_job(log):
        yield from runs_of(steps(stream))


def runs_of(life: Sequence[Step]) -> Iterator[Run]:
    """The runs of one life, the earliest first."""
    begun: Step | None = None
    for step in life:
        if begun is not None and step.after.state is not State.LEASED:
            yield _run(begun, step)
            begun = None
        if isinstance(step.recorded.event, e.Leased):
            begun = step
    if begun is not None:
        yield _run(begun, None)


def _run(begun: Step, over: Step | None) -> Run:
    job, event = begun.after, begun.recorded.event
    assert isinstance(event, e.Leased)
    end = None if over is None else over.recorded.event
    why, error = _why(end)
    return Run(
        job.id,
        job.spec.name,
        job.spec.queue,
        begun.recorded.version,
        event.start,
        event.worker,
        event.at,
        None if end is None else end.at,
        RUNNING if end is None else end.kind,
        why,
        error,
        end.cause if isinstance(end, e.Failed) else None,
    )


def _why(end: e.Event | None) -> tuple[str | None, str | None]:
    """Why a run ended as it did, and the text of its error."""
    match end:
        case e.Completed():
            return end.outcome, None
        case e.Failed():
            return end.outcome, end.error
        case e.RetryScheduled():
            return None, end.error
        case e.Released():
            return end.reason, end.note
        case e.LeaseExpired():
            return end.cause, None
        case _:
            return None, None
