"""Everything that an incident report tells, before it is a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from attrs import frozen

from ...domain.log import Recorded
from ..replay.depth import DepthOverTime
from ..replay.facts import AuditLine
from ..replay.faults import Faults
from ..replay.totals import Totals
from ..replay.workers import Workforce
from .over_time import WaitsOverTime
from .suffering import Suffered

#: What a control change is called, by its kind in the audit log.
CHANGES = {
    "worker_started": "worker started",
    "worker_stopped": "worker stopped",
    "worker_died": "worker found dead",
    "queue_paused": "queue paused",
    "queue_resumed": "queue resumed",
    "limit_changed": "limit changed",
    "schedule_changed": "schedule changed",
}


@frozen
class Sufferer:
    """One of the jobs that suffered most, with its stream up to the end of the window."""

    suffered: Suffered
    stream: Sequence[Recorded]


@frozen
class Incident:
    """A window and what happened in it.  ``chosen`` are the filters, as they were written."""

    since: datetime
    until: datetime
    chosen: Sequence[str]
    depth: DepthOverTime
    totals: Totals
    waits: WaitsOverTime
    faults: Faults
    work: Workforce
    changes: Sequence[AuditLine]
    sufferers: Sequence[Sufferer]


def changes_within(lines: Iterable[AuditLine], since: datetime, until: datetime) -> list[AuditLine]:
    """The control changes of a window."""
    return [line for line in lines if line.kind in CHANGES and since <= line.at <= until]
