"""Which rows and items a question is about, before anything is locked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from ...domain.job import JobSpec
from ...domain.states import State
from ...projections.row import SpecRow
from ..ports import Claim
from .tables import GroupKey, StoredItem, StoredJob

WAITING = frozenset({State.QUEUED.value, State.GROUPED.value, State.RETRY_WAIT.value})


def waits(job: StoredJob, queues: Iterable[str], names: Iterable[str]) -> bool:
    """Whether the job is waiting for a worker that serves these queues and knows these names."""
    state, spec = job.state, job.spec
    return state.state in WAITING and not state.held and spec.queue in queues and spec.name in names


def unknown_names(
    jobs: Iterable[StoredJob], queues: Iterable[str], names: Iterable[str], at: datetime
) -> list[str]:
    """The names of due jobs of these queues that are none of ``names``, in order."""
    due = [job for job in jobs if job.state.due_at <= at and not job.state.suspect]
    found = {job.spec.name for job in due if waits(job, queues, (job.spec.name,))}
    return sorted(found - set(names))


def due_jobs(jobs: Iterable[StoredJob], wanted: Claim, at: datetime) -> list[StoredJob]:
    """Every due job that the claim may give, in claim order."""
    names, queues = frozenset(wanted.names), frozenset(wanted.queues)
    place = {queue: number for number, queue in reversed(list(enumerate(wanted.queues)))}
    due = [
        job
        for job in jobs
        if job.state.due_at <= at
        and (wanted.since is None or job.state.suspect or job.state.due_at >= wanted.since)
        and waits(job, queues, names)
        and (job.state.state == State.GROUPED or job.spec.ordering_key not in wanted.without)
        and job.spec.after not in wanted.parents
    ]

    def claim_order(job: StoredJob) -> tuple[int, int, datetime, int]:
        return -job.spec.priority, place[job.spec.queue], job.state.due_at, job.seq

    return sorted(due, key=claim_order)


def take_free(
    jobs: Iterable[StoredJob], wanted: Claim, lock: Callable[[StoredJob], bool]
) -> list[StoredJob]:
    """The first of ``jobs`` that can be locked, within the claim's limits."""
    taken: list[StoredJob] = []
    suspects = wanted.suspects
    for job in jobs:
        if len(taken) >= wanted.limit:
            break
        if job.state.suspect and suspects <= 0:
            continue
        if lock(job):
            taken.append(job)
            suspects -= job.state.suspect
    return taken


def leased_jobs(
    jobs: Iterable[StoredJob], worker: str | None = None, ended_by: datetime | None = None
) -> list[StoredJob]:
    """Leased jobs, of one worker if it is given, whose lease has ended if a time is given."""
    return [
        job
        for job in jobs
        if job.state.state == State.LEASED
        and (worker is None or job.state.worker == worker)
        and (ended_by is None or job.state.due_at <= ended_by)
    ]


def group_of(spec: SpecRow | JobSpec) -> GroupKey:
    """What identifies the group that a job is."""
    return spec.queue, spec.name, spec.group_key or ""


def open_groups(jobs: Iterable[StoredJob]) -> list[StoredJob]:
    """The groups that still take items."""
    return [job for job in jobs if job.state.state == State.GROUPED]


def by_key(items: Iterable[StoredItem]) -> dict[GroupKey, list[StoredItem]]:
    """The items of each key, the keys in the order of their first items."""
    keys: dict[GroupKey, list[StoredItem]] = {}
    for item in items:
        keys.setdefault(item.key, []).append(item)
    return keys
