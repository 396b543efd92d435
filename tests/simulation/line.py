"""Who waits for whom in a world: jobs of one ordering key, and jobs after others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from leasebook.domain import Recorded
from leasebook.domain.events import Completed, Enqueued, Leased
from leasebook.infra.memory.tables import StoredJob


def is_over(rows: Mapping[UUID, StoredJob], row: StoredJob) -> bool:
    """Whether nothing can happen to a job any more: it is held, or it must wait for one that is."""
    behind = None
    while not row.state.held:
        blocker = row.state.blocked_by
        if blocker is None or blocker not in rows:
            return False
        behind, row = row, rows[blocker]
    if behind is None:
        return True
    # Who comes after a job that is held is held itself.
    return row.spec.on_hold is None and behind.spec.ordering_key == row.spec.ordering_key


def parents_come_first(
    world: object, streams: Mapping[UUID, Sequence[Recorded]], runs: object
) -> Iterator[str]:
    """A job that comes after another starts when that one has succeeded, and not before."""
    done = {
        job_id: stream[-1].event_id
        for job_id, stream in streams.items()
        if isinstance(stream[-1].event, Completed)
    }
    for job_id, stream in streams.items():
        birth = stream[0].event
        parent = birth.spec.after if isinstance(birth, Enqueued) else None
        first = next((each for each in stream if isinstance(each.event, Leased)), None)
        if parent is None or first is None:
            continue
        if first.event_id < done.get(parent, first.event_id + 1):
            yield f"job {job_id} started, and job {parent} had not succeeded"
