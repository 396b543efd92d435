"""The jobs that have unique keys somebody else wants, and how they are moved."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from ...domain.events import Rescheduled
from ...domain.job import Job, JobSpec
from ...domain.log import Change
from ...domain.states import State
from ..codec import KINDS
from ..documents import dumps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def moment_of(microseconds: int) -> datetime:
    """A time from microseconds since 1970."""
    return EPOCH + microseconds * MICROSECOND


def holder_of(doc: dict[str, Any]) -> Job:
    """The job that a document of ``statements.keys`` tells of, as far as a decision looks at it.

    Its policy is not the job's own, and its arguments are null where they were not asked for.
    """
    expires = doc["expires_at"]
    spec = JobSpec(
        UUID(doc["id"]),
        doc["name"],
        dumps(doc["args"]),
        moment_of(doc["enqueued_at"]),
        doc["queue"],
        expires_at=None if expires is None else moment_of(expires),
        unique_key=doc["unique_key"],
    )
    state = State(doc["state"])
    at, due_at = moment_of(doc["at"]), moment_of(doc["due_at"])
    return Job(spec, state, doc["version"], at, due_at, held=doc["held"])


def holders_of(pairs: str | None) -> dict[int, Job]:
    """Holders by place, from the document ``held``."""
    told: list[tuple[int, dict[str, Any]]] = [] if pairs is None else json.loads(pairs)
    return {place: holder_of(doc) for place, doc in told}


def moves(changes: Iterable[Change]) -> dict[str, object]:
    """The parameters of ``statements.keys.reschedule``."""
    made = list(changes)
    return {
        "ids": [str(each.after.id) for each in made],
        "versions": [each.after.version - 1 for each in made],
        "ats": [each.after.at.isoformat() for each in made],
        "due_ats": [each.after.due_at.isoformat() for each in made],
        "kind": KINDS[Rescheduled.kind],
    }
