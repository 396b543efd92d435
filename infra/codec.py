"""Events as they are stored: a kind with its version, four hot columns, and a small JSON document.

The document of an event never changes its meaning under one kind: a new shape gets a new version
in ``KINDS`` and an upcast.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, assert_never
from uuid import UUID

from ..domain import events as e
from ..domain.errors import DamagedEvent, UnknownEvent
from ..domain.events import Event
from ..domain.states import State
from ..domain.values import CloseReason, EffectKind, ExpiryCause, Outcome, ReleaseReason
from .documents import dumps, encode_spec, given, spec_of, uuid_of

T = TypeVar("T")

#: event kind -> the kind as it is stored, with the version of its document
KINDS: dict[str, str] = {event.kind: f"{event.kind}.v1" for event in e.EVENTS}

_ENDS = {KINDS[e.Completed.kind]: State.DONE, KINDS[e.Failed.kind]: State.FAILED}


def state_after(kind: str | None) -> State | None:
    """Whether a job whose last event is of this stored kind has ended: done, failed, else queued.

    None for a job without events.
    """
    return None if kind is None else _ENDS.get(kind, State.QUEUED)


class EventRow(NamedTuple):
    """The columns of one event.  ``due_at`` is when the job is due or, leased, its lease ends."""

    kind: str
    at: datetime
    due_at: datetime | None
    lease: int | None
    worker: str | None
    data: str | None


def encode(event: Event) -> EventRow:
    """The columns that an event is stored in."""
    kind, at = KINDS[event.kind], event.at
    match event:
        case e.Leased():
            data: str | None = f'{{"start":{event.start}}}'
            return EventRow(kind, at, event.lease_until, None, event.worker, data)
        case e.Completed():
            data = None
            if not is_plain(event):
                data = f'{{"outcome":"{event.outcome}","result":{event.result}}}'
            return EventRow(kind, at, None, event.lease, None, data)
        case e.Enqueued():
            data = encode_spec(event.spec, event.blocked_by)
            return EventRow(kind, at, event.due_at, None, None, data)
        case e.ItemsJoined():
            arrived = dumps([each.isoformat() for each in event.arrived])
            items, ids = ",".join(event.items), dumps(event.item_ids)
            data = f'{{"ids":{ids},"arrived":{arrived},"items":[{items}]}}'
            return EventRow(kind, at, event.due_at, None, None, data)
        case e.GroupClosed():
            return EventRow(kind, at, event.due_at, None, None, dumps({"reason": event.reason}))
        case e.Rescheduled() | e.Unblocked():
            return EventRow(kind, at, event.due_at, None, None, None)
        case e.Blocked():
            return EventRow(kind, at, None, None, None, dumps({"by": str(event.by)}))
        case e.Heartbeat():
            return EventRow(kind, at, event.lease_until, event.lease, None, None)
        case e.EffectStarted() | e.EffectCompleted():
            head = dumps({"key": event.key, "to": event.destination, "effect": event.effect})
            receipt = ""
            if isinstance(event, e.EffectCompleted):
                receipt = f',"receipt":{event.receipt}'
            return EventRow(kind, at, None, event.lease, None, f"{head[:-1]}{receipt}}}")
        case e.EffectReleased():
            data = dumps({"key": event.key, "reason": event.reason})
            return EventRow(kind, at, None, event.lease, None, data)
        case e.Released():
            data = dumps(given(reason=event.reason, note=event.note))
            return EventRow(kind, at, event.due_at, event.lease, None, data)
        case e.RetryScheduled():
            data = dumps({"error": event.error})
            return EventRow(kind, at, event.due_at, event.lease, None, data)
        case e.LeaseExpired():
            data = dumps({"cause": event.cause})
            return EventRow(kind, at, event.due_at, event.lease, None, data)
        case e.Failed():
            data = dumps(
                given(outcome=event.outcome, held=event.held, error=event.error, cause=event.cause)
            )
            return EventRow(kind, at, None, event.lease, None, data)
    assert_never(event)


def is_plain(event: e.Completed) -> bool:
    """Whether a completion has nothing to tell beyond its columns."""
    return event.result == "null" and event.outcome is Outcome.DONE


def decode(job_id: UUID, row: EventRow) -> Event:
    """The event that a row holds.

    Raises UnknownEvent for a kind this release does not know, DamagedEvent for one it cannot read.
    """
    try:
        document: Any = {} if row.data is None else json.loads(row.data)
    except ValueError as error:
        raise DamagedEvent(job_id, row.kind, f"{type(error).__name__} {error}") from error
    return decode_parsed(job_id, row, document)


def decode_parsed(job_id: UUID, row: EventRow, document: Any) -> Event:
    """The same with the document that was parsed, {} for none; ``row.data`` is not looked at."""
    decoder = _DECODERS.get(row.kind)
    if decoder is None:
        raise UnknownEvent(row.kind)
    try:
        return decoder(job_id, row, document)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedEvent(job_id, row.kind, f"{type(error).__name__} {error}") from error


def _there(value: T | None, column: str) -> T:
    if value is None:
        raise ValueError(f"without {column}")
    return value


def _due(row: EventRow) -> datetime:
    return _there(row.due_at, "due_at")


def _lease(row: EventRow) -> int:
    return _there(row.lease, "lease")


def _enqueued(job_id: UUID, row: EventRow, doc: Any) -> Event:
    spec = spec_of(job_id, row.at, doc)
    return e.Enqueued(row.at, spec, _due(row), uuid_of(doc.get("blocked_by")))


def _items_joined(job_id: UUID, row: EventRow, doc: Any) -> Event:
    items = tuple(dumps(each) for each in doc["items"])
    arrived = tuple(datetime.fromisoformat(each) for each in doc["arrived"])
    return e.ItemsJoined(row.at, items, tuple(doc["ids"]), arrived, _due(row))


def _group_closed(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.GroupClosed(row.at, CloseReason(doc["reason"]), _due(row))


def _rescheduled(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.Rescheduled(row.at, _due(row))


def _blocked(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.Blocked(row.at, UUID(doc["by"]))


def _unblocked(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.Unblocked(row.at, _due(row))


def _leased(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.Leased(row.at, _there(row.worker, "worker"), _due(row), doc["start"])


def _heartbeat(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.Heartbeat(row.at, _lease(row), _due(row))


def _effect_started(job_id: UUID, row: EventRow, doc: Any) -> Event:
    kind = EffectKind(doc["effect"])
    return e.EffectStarted(row.at, _lease(row), doc["key"], doc["to"], kind)


def _effect_completed(job_id: UUID, row: EventRow, doc: Any) -> Event:
    kind, receipt = EffectKind(doc["effect"]), dumps(doc["receipt"])
    return e.EffectCompleted(row.at, _lease(row), doc["key"], doc["to"], kind, receipt)


def _effect_released(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.EffectReleased(row.at, _lease(row), doc["key"], doc["reason"])


def _released(job_id: UUID, row: EventRow, doc: Any) -> Event:
    reason = ReleaseReason(doc["reason"])
    return e.Released(row.at, _lease(row), reason, _due(row), doc.get("note"))


def _retry_scheduled(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.RetryScheduled(row.at, _lease(row), doc["error"], _due(row))


def _lease_expired(job_id: UUID, row: EventRow, doc: Any) -> Event:
    return e.LeaseExpired(row.at, _lease(row), ExpiryCause(doc["cause"]), _due(row))


def _completed(job_id: UUID, row: EventRow, doc: Any) -> Event:
    result = dumps(doc["result"]) if "result" in doc else "null"
    return e.Completed(row.at, _lease(row), result, Outcome(doc.get("outcome", Outcome.DONE)))


def _failed(job_id: UUID, row: EventRow, doc: Any) -> Event:
    cause = ExpiryCause(doc["cause"]) if "cause" in doc else None
    outcome = Outcome(doc["outcome"])
    return e.Failed(row.at, row.lease, outcome, doc["held"], doc["error"], cause)


_DECODERS: dict[str, Callable[[UUID, EventRow, Any], Event]] = {
    "enqueued.v1": _enqueued,
    "items_joined.v1": _items_joined,
    "group_closed.v1": _group_closed,
    "rescheduled.v1": _rescheduled,
    "blocked.v1": _blocked,
    "unblocked.v1": _unblocked,
    "leased.v1": _leased,
    "heartbeat.v1": _heartbeat,
    "effect_started.v1": _effect_started,
    "effect_completed.v1": _effect_completed,
    "effect_released.v1": _effect_released,
    "released.v1": _released,
    "retry_scheduled.v1": _retry_scheduled,
    "lease_expired.v1": _lease_expired,
    "completed.v1": _completed,
    "failed.v1": _failed,
}
