"""Lives of jobs for pure tests: commands go through the real `decide`, events are numbered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from attrs import evolve as replace

from leasebook.domain.commands import (
    CloseGroup,
    Command,
    Complete,
    CompleteEffect,
    Enqueue,
    ExpireLease,
    Fail,
    Item,
    JoinItems,
    OpenGroup,
    Release,
    ReleaseEffect,
    Renew,
    Reschedule,
    StartEffect,
    TakeLease,
    Unblock,
)
from leasebook.domain.decide import change
from leasebook.domain.decide.guard import moment
from leasebook.domain.decide.waiting import block
from leasebook.domain.events import Event
from leasebook.domain.evolve import evolve
from leasebook.domain.job import Group, Job, JobSpec, Policy
from leasebook.domain.log import Recorded
from leasebook.domain.states import State
from leasebook.domain.values import EffectKind, ExpiryCause, ReleaseReason

START = datetime(2026, 3, 1, 14, 3, 22, 115_000, UTC)
GROUP = Group(window=10, max_hold=60, max_size=3)


def at(seconds: float) -> datetime:
    """The moment so many seconds after the start of every test."""
    return START + timedelta(seconds=seconds)


def job_id(number: int) -> UUID:
    """A readable id in the form of a UUIDv7."""
    return UUID(f"01920000-0000-7000-8000-{number:012}")


def spec(number: int = 1, **given: Any) -> JobSpec:
    """A spec with plain defaults; ``retries`` and the like go into its policy."""
    policy = {
        name: given.pop(name)
        for name in ("retries", "timeout", "lease", "on_exhausted", "on_expired")
        if name in given
    }
    fields: dict[str, Any] = {
        "id": job_id(number),
        "name": "sync_page",
        "args": '{"path":"a.md"}',
        "enqueued_at": START,
        "policy": Policy(**policy),
    }
    return JobSpec(**fields | given)


def group_spec(number: int = 1, group: Group = GROUP, **given: Any) -> JobSpec:
    """The spec of a group."""
    return spec(number, group=group, group_key="a.md", args="null", **given)


def item(number: int, seconds: float = 0.0) -> Item:
    """An inbox item that arrived after so many seconds."""
    return Item(number, at(seconds), f'{{"n":{number}}}')


def under(command: Command, token: int) -> Command:
    """The command under another lease token; one that carries none as it is."""
    match command:
        case Renew() | Complete() | Fail() | Release() | ExpireLease():
            return replace(command, token=token)
        case StartEffect() | CompleteEffect() | ReleaseEffect():
            return replace(command, token=token)
        case _:
            return command


class Life:
    """One job that is told what to do.  Each command goes through `decide`, which may refuse it."""

    def __init__(self, event_ids: count[int] | None = None) -> None:
        self.job: Job | None = None
        self.stream: list[Recorded] = []
        self._event_ids = count(1) if event_ids is None else event_ids

    def do(self, command: Command) -> tuple[Event, ...]:
        """Decide, evolve and record; the events that came of it."""
        change_ = change(self.job, command)
        self._record(change_.events, change_.after)
        return change_.events

    def _record(self, events: tuple[Event, ...], after: Job) -> None:
        for event in events:
            version = len(self.stream) + 1
            recorded = Recorded(after.id, version, next(self._event_ids), 7, event)
            self.stream.append(recorded)
        self.job = after

    @property
    def now(self) -> Job:
        """The job, which must be there."""
        assert self.job is not None
        return self.job

    @property
    def token(self) -> int:
        """The token of the lease in force, or the last version when there is none."""
        return self.now.version if self.now.lease is None else self.now.lease.token

    def enqueue(self, seconds: float = 0.0, run_at: float | None = None, **given: Any) -> Life:
        due = None if run_at is None else at(run_at)
        self.do(Enqueue(at(seconds), spec(enqueued_at=at(seconds), **given), due))
        return self

    def open_group(self, *items: Item, seconds: float = 0.0, **given: Any) -> Life:
        items = items or (item(1),)
        self.do(OpenGroup(at(seconds), group_spec(enqueued_at=at(seconds), **given), items))
        return self

    def join(self, *items: Item, seconds: float) -> Life:
        self.do(JoinItems(at(seconds), items))
        return self

    def close(self, seconds: float) -> Life:
        self.do(CloseGroup(at(seconds)))
        return self

    def reschedule(self, seconds: float, due: float) -> Life:
        self.do(Reschedule(at(seconds), at(due)))
        return self

    def lease(self, seconds: float, worker: str = "w1") -> Life:
        self.do(TakeLease(at(seconds), worker))
        return self

    def block(self, seconds: float, by: int = 9) -> Life:
        job = self.now
        events = block(job, moment(job, at(seconds)), job_id(by))
        for event in events:
            job = evolve(job, event)
        self._record(events, job)
        return self

    def unblock(self, seconds: float) -> Life:
        self.do(Unblock(at(seconds)))
        return self

    def orphan(self, seconds: float) -> Life:
        self.do(TakeLease(at(seconds), "w1", parent_failed=True))
        return self

    def begin(self, seconds: float, key: str = "post:42", to: str = "chat") -> Life:
        self.do(StartEffect(at(seconds), self.token, key, to))
        return self

    def effect(self, seconds: float, key: str = "post:42", to: str = "chat") -> Life:
        self.do(CompleteEffect(at(seconds), self.token, key, to, EffectKind.CALL, '{"ts":1}'))
        return self

    def reject(self, seconds: float, key: str = "post:42") -> Life:
        self.do(ReleaseEffect(at(seconds), self.token, key, "HTTP 404"))
        return self

    def renew(self, seconds: float, until: float) -> Life:
        self.do(Renew(at(seconds), self.token, at(until)))
        return self

    def complete(self, seconds: float, **given: Any) -> Life:
        self.do(Complete(at(seconds), self.token, **given))
        return self

    def fail(
        self, seconds: float, error: str = "ValueError: boom", delay: float = 60.0, **given: Any
    ) -> Life:
        self.do(Fail(at(seconds), self.token, error, delay, **given))
        return self

    def release(
        self,
        seconds: float,
        reason: ReleaseReason = ReleaseReason.RATE_LIMITED,
        delay: float = 0.0,
        note: str | None = None,
    ) -> Life:
        self.do(Release(at(seconds), self.token, reason, delay, note))
        return self

    def expire(self, seconds: float, cause: ExpiryCause = ExpiryCause.WORKER_LOST) -> Life:
        self.do(ExpireLease(at(seconds), self.token, cause))
        return self


def in_state(state: State | None) -> Life:
    """A life that stands in ``state`` (None: not begun), due by second 70 where it waits."""
    match state:
        case None:
            return Life()
        case State.QUEUED:
            return Life().enqueue()
        case State.GROUPED:
            return Life().open_group()
        case State.LEASED:
            return Life().enqueue().lease(1)
        case State.RETRY_WAIT:
            return Life().enqueue().lease(1).fail(2)
        case State.DONE:
            return Life().enqueue().lease(1).complete(2)
        case State.FAILED:
            return Life().enqueue(retries=0).lease(1).fail(2)
