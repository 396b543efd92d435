"""The history of one job as a person would tell it: time, what, why, by whom, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import assert_never
from uuid import UUID

from attrs import frozen

from ..domain import events as e
from ..domain.job import Job
from ..domain.log import Recorded
from ..domain.states import State
from ..domain.values import CloseReason, EffectKind, ExpiryCause, Outcome, ReleaseReason
from .streams import Step, steps
from .wording import count, duration, one_line

STAMP_CHARS = len("2026-03-01 14:03:22.115")

RELEASED = {
    ReleaseReason.SHUTDOWN: "its worker shut down",
    ReleaseReason.SNOOZE: "it asked to run later",
    ReleaseReason.OUTAGE: "something it needs was out of reach",
    ReleaseReason.RATE_LIMITED: "it met a rate limit",
    ReleaseReason.NEVER_STARTED: "its worker never started it",
}


@frozen
class Line:
    """One line of a story.

    ``at`` and ``version`` are None in the heading.  ``stamp`` is the time as it is shown: with its
    date when the day is another than on the line before.
    """

    at: datetime | None
    version: int | None
    stamp: str
    text: str

    def __str__(self) -> str:
        return self.text if self.at is None else f"{self.stamp:>{STAMP_CHARS}}  {self.text}"


def tell(stream: Sequence[Recorded], names: Mapping[str, str], zone: tzinfo = UTC) -> list[Line]:
    """The lines of one job's life, a heading first; none for an empty stream.

    ``names`` gives worker ids the names they are shown by, an id that is not there shows as it is.
    Times are shown in ``zone``.  Raises ValueError for a stream that does not begin with its birth.
    """
    if not stream:
        return []
    life = steps(stream)
    if not life:
        raise ValueError(f"the stream of job {stream[0].job_id} does not begin with its birth")
    lines = [Line(None, None, "", heading(life[0].after))]
    day = None
    for step, text in _texts(life, Teller(names, zone)):
        local = step.recorded.at.astimezone(zone)
        stamp = clock(local) if local.date() == day else f"{local.date()} {clock(local)}"
        day = local.date()
        lines.append(Line(step.recorded.at, step.recorded.version, stamp, text))
    return lines


def clock(local: datetime) -> str:
    """The time of day to the millisecond."""
    return local.strftime("%H:%M:%S.") + f"{local.microsecond // 1000:03}"


def heading(job: Job) -> str:
    """Which job it is."""
    spec = job.spec
    told = [f"job {spec.id}: {spec.name}"]
    for name in ("label", "owner", "subject", "unique_key", "ordering_key", "after"):
        value = getattr(spec, name)
        if value is not None:
            told.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(told)


def _texts(life: Sequence[Step], teller: Teller) -> Iterator[tuple[Step, str]]:
    """One text for each event; heartbeats in a row share one."""
    beats: list[Step] = []
    for step in life:
        if isinstance(step.recorded.event, e.Heartbeat):
            beats.append(step)
            continue
        if beats:
            yield beats[0], teller.beats(beats)
            beats = []
        yield step, teller.text(step)
    if beats:
        yield beats[0], teller.beats(beats)


class Teller:
    """Tells the steps of one life, in order.  It remembers since when the job has waited."""

    def __init__(self, names: Mapping[str, str], zone: tzinfo) -> None:
        self.names = names
        self.zone = zone
        self.waits_since: datetime | None = None
        self.waits_for = ""

    def text(self, step: Step) -> str:
        """What one event says, with its cost."""
        before, event, after = step.before, step.recorded.event, step.after
        match event:
            case e.Enqueued():
                why = "as asked" if after.state is State.QUEUED else "for its items"
                behind = event.blocked_by
                self._wait(event.at, why if behind is None else f"for job {behind}")
                return self._enqueued(event, after)
            case e.ItemsJoined():
                size = after.spec.group.max_size if after.spec.group else len(after.items)
                joined = count(len(event.items), "item")
                return f"{joined} joined ({len(after.items)} of {size}); {self._due(after)}"
            case e.GroupClosed():
                why = "it is full" if event.reason is CloseReason.FULL else "before it was full"
                return f"closed with {count(len(after.items), 'item')}, {why}; {self._due(after)}"
            case e.Rescheduled():
                self.waits_for = "as asked"
                return f"moved to another time; {self._due(after)}"
            case e.Leased():
                name = self.names.get(event.worker, event.worker)
                run = f"start {event.start}, {_attempt(after, after.attempts + 1)}"
                return f"leased by {name} ({run}) after waiting {self._waited(before, event)}"
            case e.Heartbeat():
                return self.beats([step])
            case e.Blocked():
                self._wait(event.at, f"for job {event.by}")
                return _behind(event.by)
            case e.Unblocked():
                self._wait(event.at, "its turn")
                return f"its turn may have come; {self._due(after)}"
            case e.EffectStarted():
                return f"effect {event.key} to {one_line(event.destination)} begun"
            case e.EffectCompleted():
                return _completed_effect(event)
            case e.EffectReleased():
                return f"effect {event.key} has not happened: {one_line(event.reason)}"
            case e.Released():
                self._wait(event.at, "as asked")
                note = "" if event.note is None else f" ({one_line(event.note)})"
                why = RELEASED[event.reason] + note
                return f"given back after {_ran(step)}: {why}; no attempt spent; {self._due(after)}"
            case e.RetryScheduled():
                self._wait(event.at, "for its retry")
                error = one_line(event.error)
                return f"failed after {_ran(step)}: {error}; {_spent(after)}; {self._due(after)}"
            case e.LeaseExpired():
                self._wait(event.at, "as asked")
                return f"{_expired(step, event)}; {_spent(after)}; {self._due(after)}"
            case e.Completed():
                word = "done" if event.outcome is Outcome.DONE else "skipped"
                return f"{word} after {_ran(step)}{_total(after)}"
            case e.Failed():
                return _failed(step, event)
        assert_never(event)

    def beats(self, beats: Sequence[Step]) -> str:
        """Heartbeats in a row."""
        last = beats[-1].recorded.event
        assert isinstance(last, e.Heartbeat)
        until = clock(last.lease_until.astimezone(self.zone))
        if len(beats) == 1:
            return f"heartbeat: its lease now runs until {until}"
        at = clock(last.at.astimezone(self.zone))
        return f"{len(beats)} heartbeats, the last at {at}: its lease now runs until {until}"

    def _enqueued(self, event: e.Enqueued, job: Job) -> str:
        spec = event.spec
        where = f"on queue {spec.queue}, priority {spec.priority}"
        if spec.group is None:
            behind = "" if event.blocked_by is None else f"{_behind(event.blocked_by)}; "
            return f"enqueued {where}; {behind}{self._due(job)}"
        return f"opened for the items of {spec.group_key} {where}; {self._due(job)}"

    def _due(self, job: Job) -> str:
        if job.due_at <= job.at:
            return "due at once"
        local, day = job.due_at.astimezone(self.zone), job.at.astimezone(self.zone).date()
        shown = clock(local) if local.date() == day else f"{local.date()} {clock(local)}"
        return f"due in {duration(job.due_at - job.at)}, at {shown}"

    def _wait(self, since: datetime, why: str) -> None:
        self.waits_since, self.waits_for = since, why

    def _waited(self, before: Job | None, event: e.Leased) -> str:
        since = self.waits_since
        if before is None or since is None:
            return "an unknown time"
        due = max(since, before.due_at)
        if due == since:
            return duration(event.at - due)
        planned = f"{duration(due - since)} {self.waits_for}"
        return f"{planned} and {duration(event.at - due)} for a worker"


def _behind(blocker: UUID) -> str:
    return f"waits for job {blocker}, which must end first"


def _completed_effect(event: e.EffectCompleted) -> str:
    match event.effect:
        case EffectKind.CALL:
            return f"effect {event.key} to {one_line(event.destination)} is done"
        case EffectKind.MUTATION:
            return f"change {event.key} of {one_line(event.destination)} committed"
        case EffectKind.SNAPSHOT:
            return f"decision {event.key} kept for later runs"
    assert_never(event.effect)


def _attempt(job: Job, number: int) -> str:
    return f"attempt {number} of {job.spec.policy.retries + 1}"


def _spent(after: Job) -> str:
    return f"{_attempt(after, after.attempts)} is spent"


def _ran(step: Step) -> str:
    lease = None if step.before is None else step.before.lease
    return "an unknown time" if lease is None else duration(step.recorded.at - lease.started_at)


def _expired(step: Step, event: e.LeaseExpired) -> str:
    match event.cause:
        case ExpiryCause.WORKER_LOST:
            return f"lease ended without an answer: its worker died after {_ran(step)}"
        case ExpiryCause.TIMED_OUT:
            limit = duration(timedelta(seconds=step.after.spec.policy.timeout))
            return f"stopped after {_ran(step)}: it ran past its time-out of {limit}"
        case ExpiryCause.LEASE_ENDED:
            return f"lease ended without an answer after {_ran(step)}"
    assert_never(event.cause)


def _total(after: Job) -> str:
    """The whole cost, when it took more than one start."""
    if after.starts <= 1:
        return ""
    whole = duration(after.at - after.spec.enqueued_at)
    return f"; {after.starts} starts, {whole} since it was enqueued"


def _failed(step: Step, event: e.Failed) -> str:
    after, error = step.after, one_line(event.error)
    held = "held for an operator" if event.held else "not held"
    if event.outcome is Outcome.EXPIRED:
        return f"expired after {duration(after.at - after.spec.enqueued_at)}: {error}; {held}"
    if event.outcome is Outcome.PARENT_FAILED:
        return f"does not start: {error}; {held} until that one succeeds"
    if event.outcome is Outcome.ABORTED:
        return f"stopped after {_ran(step)}, {error}; it is not run again; {held}{_total(after)}"
    word = "lost" if event.outcome is Outcome.LOST else "failed for good"
    why = "; no retry is of use" if event.outcome is Outcome.REJECTED else ""
    return f"{word} after {_ran(step)}: {error}{why}; {_spent(after)}; {held}{_total(after)}"
