"""What is kept in the audit log of runs that did not end as their handlers meant."""

from __future__ import annotations

from collections.abc import Iterable

from ...domain.events import Failed
from ...domain.log import Change
from ...domain.values import Outcome
from ..documents import dumps
from ..ports import Evidence


def of_aborts(changes: Iterable[Change]) -> list[Evidence]:
    """A line for each job that was aborted: which run it was, of whom, and what ended it."""
    return [
        _of_abort(change, event)
        for change in changes
        if type(event := change.events[-1]) is Failed and event.outcome is Outcome.ABORTED
    ]


def _of_abort(change: Change, event: Failed) -> Evidence:
    lease = None if change.before is None else change.before.lease
    detail = {"name": change.after.spec.name, "lease": event.lease, "error": event.error}
    worker = None if lease is None else lease.worker
    return Evidence("job_aborted", dumps(detail), change.after.id, worker)
