"""One event of each kind, plain and with everything set: what the golden files must decode to.

A golden file is added with its kind and version and never edited: logs that hold such rows exist.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from leasebook.domain import events as e
from leasebook.domain.job import Group, JobSpec, Policy
from leasebook.domain.values import (
    CloseReason,
    EffectKind,
    ExpiryCause,
    OnExhausted,
    OnExpired,
    OnHold,
    Outcome,
    ReleaseReason,
)

JOB = UUID("01920000-0000-7000-8000-000000000001")
AT = datetime(2026, 3, 1, 14, 3, 22, 115_000, UTC)
EARLIER = UUID("01920000-0000-7000-8000-000000000000")
LATER = datetime(2026, 3, 1, 14, 13, 22, 115_001, UTC)
HOLD = datetime(2026, 3, 1, 15, 0, tzinfo=UTC)

PLAIN = JobSpec(
    JOB, "sync_page", '{"path":"a.md"}', AT, "default", 5, Policy(3, 600.0, 600.0, OnExhausted.HOLD)
)
GROUP = JobSpec(
    JOB,
    "sync_page",
    "null",
    AT,
    "Pages-x",
    9,
    Policy(1, 300.0, 60.5, OnExhausted.DROP),
    'label "ä"',
    "ann",
    "page:1",
    LATER,
    "a.md",
    Group(10.0, 60.0, 50),
    HOLD,
)

KEYED = JobSpec(
    JOB,
    "sync_page",
    "[]",
    AT,
    "default",
    5,
    Policy(3, 600.0, 600.0, OnExhausted.HOLD),
    unique_key="page ä",
)

ORDERED = JobSpec(
    JOB,
    "sync_page",
    "[]",
    AT,
    policy=Policy(3, 600.0, 600.0, OnExhausted.HOLD, OnExpired.ABORT),
    ordering_key="page ä",
    on_hold=OnHold.SKIP,
    after=EARLIER,
)

SERIAL = JobSpec(
    JOB,
    "sync_page",
    "null",
    AT,
    group_key="a.md",
    group=Group(10.0, 60.0, 50, serial=True),
    hold_until=HOLD,
    ordering_key="a.md",
    sequence=7,
)

SAMPLES: dict[str, tuple[e.Event, ...]] = {
    "enqueued.v1": (
        e.Enqueued(AT, PLAIN, AT),
        e.Enqueued(AT, GROUP, LATER),
        e.Enqueued(AT, KEYED, LATER),
        e.Enqueued(AT, ORDERED, LATER, EARLIER),
        e.Enqueued(AT, SERIAL, LATER),
    ),
    "items_joined.v1": (
        e.ItemsJoined(AT, ("1",), (7,), (AT,), LATER),
        e.ItemsJoined(AT, ('{"n":[1,2.5]}', '"ö"'), (7, 2**53), (AT, LATER), LATER),
    ),
    "group_closed.v1": (
        e.GroupClosed(AT, CloseReason.FULL, AT),
        e.GroupClosed(AT, CloseReason.FLUSHED, AT),
        e.GroupClosed(AT, CloseReason.BLOCKED, AT),
    ),
    "rescheduled.v1": (e.Rescheduled(AT, LATER),),
    "leased.v1": (e.Leased(AT, "w-1", LATER, 3),),
    "heartbeat.v1": (e.Heartbeat(AT, 2, LATER),),
    "released.v1": (
        *(e.Released(AT, 2, reason, LATER) for reason in ReleaseReason),
        e.Released(AT, 2, ReleaseReason.SNOOZE, LATER, 'a "note"'),
    ),
    "retry_scheduled.v1": (e.RetryScheduled(AT, 2, "ValueError: böse\n", LATER),),
    "lease_expired.v1": tuple(e.LeaseExpired(AT, 2, cause, AT) for cause in ExpiryCause),
    "completed.v1": (
        e.Completed(AT, 2),
        e.Completed(AT, 2, '{"pages":3}'),
        e.Completed(AT, 2, "null", Outcome.SKIPPED),
    ),
    "blocked.v1": (e.Blocked(AT, EARLIER),),
    "unblocked.v1": (e.Unblocked(AT, LATER),),
    "effect_started.v1": tuple(
        e.EffectStarted(AT, 2, 'a "key"', "chat", each) for each in EffectKind
    ),
    "effect_completed.v1": (
        e.EffectCompleted(AT, 2, "post:42", "chat ä", EffectKind.CALL, '{"ts":"1.5"}'),
        e.EffectCompleted(AT, 2, "plan", "-", EffectKind.SNAPSHOT, "null"),
    ),
    "effect_released.v1": (e.EffectReleased(AT, 2, "post:42", "HTTP 404"),),
    "failed.v1": (
        e.Failed(AT, 2, Outcome.EXHAUSTED, True, "boom"),
        e.Failed(AT, 2, Outcome.REJECTED, False, "boom"),
        e.Failed(AT, 2, Outcome.LOST, True, "its worker died"),
        e.Failed(AT, None, Outcome.EXPIRED, False, "too late"),
        e.Failed(AT, 2, Outcome.ABORTED, False, "aborted: its worker died"),
        e.Failed(AT, 2, Outcome.UNCERTAIN, True, "effect post:42 was begun"),
        e.Failed(AT, None, Outcome.PARENT_FAILED, True, "the job before it has failed"),
        e.Failed(AT, 2, Outcome.LOST, True, "its worker died", ExpiryCause.WORKER_LOST),
    ),
}
