"""Between rows and jobs, fast: a claim of 500 jobs reads 16,000 columns.

Reading builds the job straight from the tuple, with the few values that repeat from row to row
taken from a cache.  Writing turns a batch into one text array for each column; only texts that may
hold anything are quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from ...domain.job import Group, Job, JobSpec, Lease, Policy
from ...domain.log import Recorded
from ...domain.states import State
from ...domain.values import OnExhausted, OnExpired, OnHold, Outcome
from ...projections.row import due_of
from ...projections.status import Status, Summary
from ..codec import EventRow, decode
from ..documents import decode_effects
from ..ports import DataRefused

_NUL, _BETWEEN = "\0", '","'

STATES = {state.value: state for state in State}
OUTCOMES = {outcome.value: outcome for outcome in Outcome}


@lru_cache(maxsize=1_000)
def policy_of(
    retries: int, timeout: float, lease: float, on_exhausted: str, on_expired: str | None
) -> Policy:
    """The one Policy of these values: job types have few, and jobs are many."""
    expired = OnExpired(on_expired or OnExpired.RETRY)
    return Policy(retries, timeout, lease, OnExhausted(on_exhausted), expired)


@lru_cache(maxsize=1_000)
def group_of(window: float, max_hold: float, max_size: int, serial: bool) -> Group:
    """The one Group of these values."""
    return Group(window, max_hold, max_size, serial)


def job_of(row: Sequence[Any]) -> Job:
    """The job that a row of ``columns.JOB`` stands for."""
    (
        job_id, queue, priority, name, args, enqueued_at,
        retries, timeout, lease_seconds, on_exhausted,
        label, owner, subject, expires_at,
        group_key, window, max_hold, max_size, hold_until, unique_key,
        on_expired, ordering_key, on_hold, after, sequence,
        version, state, due_at, at, held, starts, attempts, interruptions,
        token, worker, started_at, items, outcome, blocked_by, blocked_due, effects,
    ) = row  # fmt: skip
    spec = JobSpec(
        job_id,
        name,
        args,
        enqueued_at,
        queue,
        priority,
        policy_of(retries, timeout, lease_seconds, on_exhausted, on_expired),
        label,
        owner,
        subject,
        expires_at,
        group_key,
        None if window is None else group_of(window, max_hold, max_size, ordering_key is not None),
        hold_until,
        unique_key,
        ordering_key,
        OnHold.BLOCK if on_hold is None else OnHold(on_hold),
        after,
        sequence,
    )
    return Job(
        spec,
        STATES[state],
        version,
        at,
        due_at if blocked_due is None else due_of(due_at, blocked_due),
        starts,
        attempts,
        interruptions,
        None if token is None else Lease(token, worker, started_at),
        tuple(items) if items else (),
        () if effects is None else decode_effects(effects),
        None if outcome is None else OUTCOMES[outcome],
        held,
        blocked_by,
    )


def uuids(values: Iterable[UUID | None]) -> str:
    """An array of uuids.  (Their ``int`` is a field; everything else of theirs is computed.)"""
    return "{" + ",".join(["null" if each is None else f"{each.int:032x}" for each in values]) + "}"


def numbers(values: Iterable[float | None]) -> str:
    """An array of numbers; floats are written so that they come back as they were."""
    return "{" + ",".join(["null" if value is None else repr(value) for value in values]) + "}"


def flags(values: Iterable[bool]) -> str:
    """An array of booleans."""
    return "{" + ",".join(["t" if value else "f" for value in values]) + "}"


def times(values: Iterable[datetime | None]) -> str:
    """An array of timestamptz.  Raises DataRefused for a time without a zone.

    The times of a batch are mostly one and the same, which is written out once.
    """
    last, text = None, "null"
    parts: list[str] = []
    for value in values:
        if value is not last and value != last:
            last, text = value, "null" if value is None else moment(value)
        parts.append(text)
    return "{" + ",".join(parts) + "}"


def moment(value: datetime) -> str:
    """A timestamptz as text.  Raises DataRefused for a time without a zone."""
    if value.tzinfo is None:
        raise DataRefused("a time without a zone cannot be stored")
    return value.isoformat()


def texts(values: Iterable[str | None]) -> str:
    """An array of texts of any content.

    Inside quotes an array knows two special characters and takes all others as they are.  Texts are
    quoted all at once, between characters that no text of PostgreSQL may hold.
    """
    given = list(values)
    if given and None not in given:
        joined = _NUL.join(cast(list[str], given))
        if joined.count(_NUL) == len(given) - 1:
            return f'{{"{_escaped(joined).replace(_NUL, _BETWEEN)}"}}'
    return (
        "{" + ",".join(["null" if each is None else f'"{_escaped(each)}"' for each in given]) + "}"
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def recorded(row: Sequence[Any]) -> Recorded:
    """The entry of the log that a row of ``statements.look.streams`` stands for."""
    job_id, version, event_id, xid, *columns = row
    return Recorded(job_id, version, event_id, xid, decode(job_id, EventRow(*columns)))


def summary_of(row: Sequence[Any]) -> Summary:
    """The summary that a row of ``summaries.of`` stands for."""
    job_id, status, outcome, name, owner, at = row
    return Summary(job_id, Status(status), OUTCOMES[outcome], name, owner, at)
