"""A batch of changes as the parameters of the statements that append it.

Everything a job and its events are is decided by the domain; here it only becomes arrays.  The two
shapes that almost every change of a busy queue has, one ``leased`` event or one plain ``completed``
event, go the short way: a handful of arrays instead of thirty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...domain.events import Completed, Leased
from ...domain.log import Change
from ...projections.row import Row, StateRow, spec_row, state_row
from ...projections.status import Summary
from ..codec import KINDS, EventRow, encode, is_plain
from ..documents import encode_effects
from .rows import flags, moment, numbers, texts, times, uuids
from .statements.append import TYPES
from .statements.columns import EVENT, SPEC, STATE

Params = dict[str, Any]

#: State that the statements take in a form of its own.
APART = ("items", "effects")

_BY_TYPE: Mapping[str, Callable[[Iterable[Any]], str]] = {
    "uuid": uuids,
    "smallint": numbers,
    "bigint": numbers,
    "float8": numbers,
    "boolean": flags,
    "timestamptz": times,
    "text": texts,
}


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The changes in order of job id, as the server orders uuids."""
    return sorted(changes, key=lambda change: change.after.spec.id.int)


def completions(changes: Sequence[Change]) -> Params | None:
    """The parameters of ``complete``, or None when a change is anything else.

    A plain completion says nothing but its time and its lease, which is the one on the row.
    """
    at = changes[0].after.at
    for change in changes:
        events = change.events
        if len(events) != 1 or type(event := events[0]) is not Completed or event.at != at:
            return None
        lease = None if change.before is None else change.before.lease
        if lease is None or event.lease != lease.token or not is_plain(event):
            return None
    kind = KINDS[Completed.kind]
    return {**_expected(changes), "at": moment(at), "kind": kind, "size": len(changes)}


def leases(changes: Sequence[Change]) -> Params | None:
    """The parameters of ``lease``, or None when they are not all leases of one worker and time."""
    first = changes[0].events[0]
    if type(first) is not Leased:
        return None
    at, worker = first.at, first.worker
    data: dict[int, str | None] = {}
    starts: list[int] = []
    for change in changes:
        events = change.events
        if len(events) != 1 or type(event := events[0]) is not Leased:
            return None
        if event.at != at or event.worker != worker:
            return None
        starts.append(event.start)
        if event.start not in data:
            data[event.start] = encode(event).data
    return {
        **_expected(changes),
        "untils": times([change.after.due_at for change in changes]),
        "starts": numbers(starts),
        "data": texts([data[start] for start in starts]),
        "at": moment(at),
        "worker": worker,
        "kind": KINDS[Leased.kind],
        "size": len(changes),
    }


def ends(changes: Sequence[Change]) -> Params:
    """The parameters of ``end``."""
    return {**_standing(changes), **_first_events(changes)}


def updates(changes: Sequence[Change]) -> Params:
    """The parameters of ``update``."""
    columns = _state_columns(changes)
    columns["items"] = texts(
        [
            None if change.before is not None and change.before.items == change.after.items
            else texts(change.after.items)
            for change in changes
        ]
    )  # fmt: skip
    columns["effects"] = texts(
        [
            None if change.before is not None and change.before.effects == change.after.effects
            else encode_effects(change.after.effects)
            for change in changes
        ]
    )  # fmt: skip
    return {**_standing(changes), **columns, **_first_events(changes)}


def births(changes: Sequence[Change]) -> Params:
    """The parameters of ``birth``.  A job that is born and ends at once has no row."""
    specs = zip(*(spec_row(change.after.spec) for change in changes), strict=True)
    columns = {name: _array(name, values) for name, values in zip(SPEC, specs, strict=True)}
    columns |= _state_columns(changes)
    columns["items"] = texts(
        [texts(change.after.items) if change.after.items else None for change in changes]
    )
    columns["effects"] = texts([None for _ in changes])
    columns["has_row"] = flags([state_row(change.after) is not None for change in changes])
    return {**columns, **_first_events(changes), "size": len(changes)}


def row_columns(rows: Sequence[Row]) -> Params:
    """Whole rows as one array for each column."""
    specs, states = zip(*rows, strict=True)
    columns = [*zip(SPEC, zip(*specs, strict=True), strict=True)]
    columns += [*zip(STATE, zip(*states, strict=True), strict=True)]
    params = {name: _array(name, values) for name, values in columns if name not in APART}
    items = [each.items for each in states]
    params["items"] = texts([texts(each) if each else None for each in items])
    effects = [each.effects for each in states]
    params["effects"] = texts([encode_effects(each) if each else None for each in effects])
    return params


def summaries(ended: Sequence[Summary]) -> Params:
    """The parameters of ``summaries.keep``."""
    ordered = sorted(ended, key=lambda each: each.job_id.int)
    return {
        "ids": uuids([each.job_id for each in ordered]),
        "statuses": texts([each.status for each in ordered]),
        "outcomes": texts([each.outcome for each in ordered]),
        "names": texts([each.name for each in ordered]),
        "owners": texts([each.owner for each in ordered]),
        "ats": times([each.at for each in ordered]),
    }


def further(changes: Sequence[Change]) -> Params | None:
    """The parameters of ``further_events``, or None when no change has a second event."""
    more = [
        (change.after.spec.id, version, encode(event))
        for change in changes
        for version, event in enumerate(change.events[1:], _first_version(change) + 1)
    ]
    if not more:
        return None
    ids, versions, rows = zip(*more, strict=True)
    return {"id": uuids(ids), "version": numbers(versions), **_event_columns(rows)}


def _first_version(change: Change) -> int:
    return change.after.version - len(change.events) + 1


def _expected(changes: Sequence[Change]) -> Params:
    return {
        "ids": uuids([change.after.spec.id for change in changes]),
        "versions": numbers([change.after.version - 1 for change in changes]),
    }


def _standing(changes: Sequence[Change]) -> Params:
    return {
        "id": uuids([change.after.spec.id for change in changes]),
        "expected": numbers([_first_version(change) - 1 for change in changes]),
        "size": len(changes),
    }


def _state_columns(changes: Sequence[Change]) -> Params:
    rows = [state_row(change.after) or _GONE for change in changes]
    columns = zip(STATE, zip(*rows, strict=True), strict=True)
    return {name: _array(name, values) for name, values in columns if name not in APART}


def _first_events(changes: Sequence[Change]) -> Params:
    return _event_columns([encode(change.events[0]) for change in changes])


def _event_columns(rows: Sequence[EventRow]) -> Params:
    columns = zip(EVENT, zip(*rows, strict=True), strict=True)
    return {f"event_{name}": _array(name, values) for name, values in columns}


def _array(name: str, values: Iterable[Any]) -> str:
    return _BY_TYPE[TYPES.get(name, "text")](values)


#: Stands in for the state of a job that has no row; it is not written.
_GONE: Any = (None,) * len(StateRow._fields)
