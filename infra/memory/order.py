"""The order of keys in memory: who stands before a job, and who waits for what has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from ...domain.job import Job
from ...domain.ordering import Ahead, Found, stand
from ...domain.states import State
from ...projections.status import end_of
from ..codec import state_after
from .session import Session
from .tables import StoredJob


def ahead(session: Session, jobs: Sequence[Job], settled: Mapping[str, int]) -> dict[UUID, Ahead]:
    """What is known to stand before these jobs, apart from who has locked it."""
    found: dict[UUID, Ahead] = {}
    for job in jobs:
        standing = stand(job, _found(session, job, settled))
        if standing is not None:
            found[job.id] = standing
    return found


def _found(session: Session, job: Job, settled: Mapping[str, int]) -> Found:
    own = session.jobs.get(job.id)
    assert own is not None, "a claimed job has a row"
    key = job.spec.ordering_key
    line = [] if key is None else [row for row in session.jobs.values() if in_line(row, key)]
    earlier = [row for row in line if row.seq < own.seq]
    prior = max(earlier, key=lambda row: row.seq, default=None)
    quiet = key is None or session.is_quiet(key) or own.seq <= settled.get(key, 0)
    items = (each.sequence for each in session.inbox.values() if each.ordering_key == key)
    item = key is not None and any(each is not None and each < own.seq for each in items)
    running = any(row.state.state == State.LEASED and row.spec.id != job.id for row in line)
    parent, state = _parent(session, job.spec.after)
    nearest = None if prior is None else prior.spec.id
    return Found(parent, state, nearest, not quiet, item, running)


def _parent(session: Session, after: UUID | None) -> tuple[UUID | None, State | None]:
    """The parent while it is neither finished nor held, and how it stands or ended."""
    if after is None:
        return None, None
    row = session.jobs.get(after)
    events = session.events.get(after)
    kept = session.summaries.get(after)
    state = state_after(events[-1].row.kind if events else None)
    state = state or end_of(None if kept is None else kept.status)
    return (None if row is None or row.state.held else after), state


def in_line(row: StoredJob, key: str) -> bool:
    """Whether later jobs of the key wait for this one."""
    return row.spec.ordering_key == key and not (row.state.held and row.spec.on_hold is not None)


def waiting_rows(
    rows: Iterable[StoredJob], blockers: Sequence[UUID], parents: Sequence[UUID]
) -> list[StoredJob]:
    """Whom ``blockers`` block, and who comes after ``parents`` and is blocked or held, by id."""
    found = [
        row
        for row in rows
        if row.state.blocked_by in blockers
        or (
            row.spec.after in parents and (row.state.blocked_by == row.spec.after or row.state.held)
        )
    ]
    return sorted(found, key=lambda row: row.spec.id)


def is_stranded(session: Session, row: StoredJob) -> bool:
    """Whether the job is blocked by one that has ended, or is held and will not end by itself."""
    if row.state.blocked_by is None:
        return False
    blocker = session.jobs.get(row.state.blocked_by)
    if blocker is None:
        return True
    is_parent = blocker.spec.id == row.spec.after
    return blocker.state.held and (is_parent or blocker.spec.on_hold is not None)
