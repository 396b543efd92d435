"""A wait behind another job, with events as a release writes them that knows of ordering keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from attrs import frozen

from leasebook.projections.replay.waiting import blocked_by
from tests.support.lives import Life, job_id


@frozen
class Kind:
    """An event of which only the kind and the other job matter here."""

    kind: str
    by: UUID | None = None
    at: ClassVar[datetime]


def after(kind: str, now: UUID | None, by: UUID | None = None) -> UUID | None:
    event: Any = Kind(kind, by)
    return blocked_by(event, now)


def test_blocked_until_unblocked_or_leased() -> None:
    other, third = job_id(2), job_id(3)
    assert after("blocked", None, other) == other
    assert after("blocked", other, third) == third
    assert after("unblocked", other) is None
    assert after("leased", other) is None


def test_other_kinds_change_nothing() -> None:
    born = Life().enqueue().stream[0].event
    assert blocked_by(born, None) is None
    assert after("rescheduled", job_id(2)) == job_id(2)
    assert after("effect_started", None) is None
