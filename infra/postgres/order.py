"""What a worker asks about the order of keys, in several statements of one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from ...domain.job import Job
from ...domain.ordering import Ahead, Found, stand
from ...projections.status import end_of
from ..codec import state_after
from .connection import Row
from .rows import texts, uuids
from .schema.name import Schema
from .statements import order

Ask: TypeAlias = Callable[[Callable[[Schema], str], Mapping[str, Any]], list[Row]]


def ahead(
    ask: Ask, schema: Schema, jobs: Sequence[Job], settled: Mapping[str, int]
) -> tuple[dict[UUID, Ahead], datetime]:
    """See ``ports.Transaction.ahead``.  The statements' order is the protocol: lock, look, mark.

    Of at least one job, and when it was looked: who may start does so later than all who ended.
    """
    quiet = _quiet(ask, schema, jobs)
    found: dict[UUID, Ahead] = {}
    asked = ask(order.ahead, {"ids": uuids([job.id for job in jobs])})
    facts = {row[0]: row[1:] for row in asked}
    at = max(row[-1] for row in asked)
    priors: list[UUID] = []
    parents: list[UUID] = []
    for job in jobs:
        parent, kind, end, prior, item, running, seq, _ = facts[job.id]
        key = job.spec.ordering_key
        known = key is None or key in quiet or seq <= settled.get(key, 0)
        state = state_after(kind) or end_of(end)
        standing = stand(job, Found(parent, state, prior, not known, item, running))
        if standing is None:
            continue
        found[job.id] = standing
        if standing.behind is not None:
            (parents if standing.behind == parent else priors).append(standing.behind)
    if not priors and not parents:
        return found, at
    wanted = {"ids": uuids([*priors, *parents]), "priors": uuids(priors), "parents": uuids(parents)}
    marked = {row[0] for row in ask(order.mark_waited_for, wanted)}
    sure = {
        job_id: each
        for job_id, each in found.items()
        if each.behind is None or each.behind in marked
    }
    return sure, at


def _quiet(ask: Ask, schema: Schema, jobs: Sequence[Job]) -> set[str]:
    """The keys of which no producer is left.

    The locks are given back at once, with a savepoint: a worker that stalls must not keep a
    business transaction waiting.  (Whoever comes later draws a higher number.)
    """
    keys = sorted({job.spec.ordering_key for job in jobs if job.spec.ordering_key is not None})
    if not keys:
        return set()
    ask(order.savepoint, {})
    rows = ask(order.try_keys, {"keys": texts(keys), "schema": schema.name})
    ask(order.roll_back, {})
    # What is written inside of one would be a subtransaction's.
    ask(order.release, {})
    return {key for (key,) in rows}
