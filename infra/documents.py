"""The JSON documents that are stored, apart from the events around them: specs and effects.

Arguments, results and receipts are JSON texts that are carried verbatim.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any
from uuid import UUID

from ..domain.job import Effect, Group, JobSpec, Policy
from ..domain.values import EffectKind, Json, OnExhausted, OnExpired, OnHold

# ``json.dumps`` would make an encoder for every call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder()


def dumps(value: object) -> str:
    """Canonical JSON text: compact, unescaped, NaN and infinities refused with ValueError."""
    return _ENCODER.encode(value)


def loads(document: str) -> Any:
    """The value of a document, as ``json.loads`` has it; sooner when no white space is about."""
    try:
        value, end = _DECODER.raw_decode(document)
    except json.JSONDecodeError:
        end, value = -1, None
    return value if end == len(document) else json.loads(document)


def canonical(document: Json) -> str:
    """A document with the members of its objects in one order, to compare it with another."""
    return json.dumps(json.loads(document), sort_keys=True, separators=(",", ":"))


def digest(spec: JobSpec) -> str:
    """What a request asks for, its job name and arguments, as 64 hexadecimal digits."""
    return hashlib.sha256(f"{spec.name}\0{canonical(spec.args)}".encode()).hexdigest()


def encode_spec(spec: JobSpec, blocked_by: UUID | None = None) -> str:
    """The document of an ``enqueued`` event.  Its id and time are columns; what is unset is absent.

    The hold of a group is in the document, so that a fold needs no arithmetic.
    """
    return with_args(encode_head(spec, blocked_by), spec.args)


def with_args(head: str, args: Json) -> str:
    """The whole document of a head, as ``encode_head`` writes it, and arguments."""
    return f'{head[:-1]},"args":{args}}}'


def encode_head(spec: JobSpec, blocked_by: UUID | None = None) -> str:
    """The same document without its last member, ``args``."""
    policy, group = spec.policy, spec.group
    return dumps(
        given(
            name=spec.name,
            queue=spec.queue,
            priority=spec.priority,
            retries=policy.retries,
            timeout=policy.timeout,
            lease=policy.lease,
            on_exhausted=policy.on_exhausted,
            label=spec.label,
            owner=spec.owner,
            subject=spec.subject,
            expires_at=_iso(spec.expires_at),
            group_key=spec.group_key,
            group=None if group is None else [group.window, group.max_hold, group.max_size],
            hold_until=_iso(spec.hold_until),
            unique_key=spec.unique_key,
            on_expired=None if policy.on_expired is OnExpired.RETRY else policy.on_expired,
            ordering_key=spec.ordering_key,
            on_hold=None if spec.on_hold is OnHold.BLOCK else spec.on_hold,
            after=_text(spec.after),
            sequence=spec.sequence,
            blocked_by=_text(blocked_by),
        )
    )


def decode_spec(job_id: UUID, at: datetime, data: str) -> JobSpec:
    """The spec that ``encode_spec`` wrote."""
    return spec_of(job_id, at, loads(data))


def spec_of(job_id: UUID, at: datetime, doc: Any) -> JobSpec:
    """The same from the document that was parsed."""
    group = doc.get("group")
    serial = doc.get("ordering_key") is not None
    return JobSpec(
        job_id,
        doc["name"],
        dumps(doc["args"]),
        at,
        doc["queue"],
        doc["priority"],
        Policy(
            doc["retries"],
            doc["timeout"],
            doc["lease"],
            OnExhausted(doc["on_exhausted"]),
            OnExpired(doc.get("on_expired", OnExpired.RETRY)),
        ),
        doc.get("label"),
        doc.get("owner"),
        doc.get("subject"),
        _time(doc.get("expires_at")),
        doc.get("group_key"),
        None if group is None else Group(group[0], group[1], group[2], serial),
        _time(doc.get("hold_until")),
        doc.get("unique_key"),
        doc.get("ordering_key"),
        OnHold(doc.get("on_hold", OnHold.BLOCK)),
        uuid_of(doc.get("after")),
        doc.get("sequence"),
    )


def encode_effects(effects: tuple[Effect, ...]) -> str:
    """The effects of a job as the document of its row: key, destination, kind and receipt of each.

    Of an uncertain one the receipt is absent.
    """
    return "[" + ",".join(_effect_text(each) for each in effects) + "]"


def _effect_text(effect: Effect) -> str:
    head = dumps([effect.key, effect.destination, effect.kind])
    return head if effect.receipt is None else f"{head[:-1]},{effect.receipt}]"


def decode_effects(document: Json | None) -> tuple[Effect, ...]:
    """The effects that ``encode_effects`` wrote; none for None."""
    if document is None:
        return ()
    return tuple(
        Effect(key, destination, EffectKind(kind), dumps(receipt[0]) if receipt else None)
        for key, destination, kind, *receipt in json.loads(document)
    )


def given(**values: object) -> dict[str, object]:
    """The values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def uuid_of(value: str | None) -> UUID | None:
    """The UUID of a text."""
    return None if value is None else UUID(value)
