"""Events and audit lines as lines of JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from ...domain.log import Recorded
from ...projections.replay.facts import AuditLine
from ..codec import EventRow, decode_parsed, encode
from ..documents import dumps, given, uuid_of


def event_line(recorded: Recorded) -> str:
    """One event; what it does not have is left out, and its document stands there as it is."""
    row = encode(recorded.event)
    head = given(
        job=str(recorded.job_id),
        version=recorded.version,
        event_id=recorded.event_id,
        xid=recorded.xid,
        kind=row.kind,
        at=row.at.isoformat(),
        due_at=None if row.due_at is None else row.due_at.isoformat(),
        lease=row.lease,
        worker=row.worker,
    )
    text = dumps(head)
    return text if row.data is None else f'{text[:-1]},"data":{row.data}}}'


def events_of(lines: Iterable[str]) -> Iterator[Recorded]:
    """The events of lines.

    Raises UnknownEvent and DamagedEvent as the codec does, ValueError and KeyError for other text.
    """
    text, job_id = "", UUID(int=0)
    moment = datetime.fromisoformat
    for line in lines:
        doc: dict[str, Any] = json.loads(line)
        if doc["job"] != text:
            text = doc["job"]
            job_id = UUID(text)
        due = doc.get("due_at")
        row = EventRow(
            doc["kind"],
            moment(doc["at"]),
            None if due is None else moment(due),
            doc.get("lease"),
            doc.get("worker"),
            None,
        )
        event = decode_parsed(job_id, row, doc.get("data", {}))
        yield Recorded(job_id, doc["version"], doc["event_id"], doc["xid"], event)


def is_of(job: UUID, line: str) -> bool:
    """Whether the line is an event of this job."""
    return line.startswith(f'{{"job":"{job}"')


def audit_line(line: AuditLine) -> str:
    """One line of the audit log."""
    head = given(
        at=line.at.isoformat(),
        kind=line.kind,
        job=None if line.job_id is None else str(line.job_id),
        worker=line.worker,
        detail=dict(line.detail),
    )
    return dumps(head)


def audit_of(line: str) -> AuditLine:
    """The line of the audit log that ``audit_line`` wrote."""
    doc: dict[str, Any] = json.loads(line)
    at = datetime.fromisoformat(doc["at"])
    return AuditLine(at, doc["kind"], doc["detail"], uuid_of(doc.get("job")), doc.get("worker"))
