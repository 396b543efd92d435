"""Keyed orders in memory: which are born, which meet the job that has their key, which came before.

All locks are taken, in order of the keys, before anything is decided, and all is decided before
anything is written: so a statement that has to wait can be tried again, and a refusal leaves
nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from attrs import define, field

from ...domain.commands import Enqueue
from ...domain.decide.keys import meet
from ...domain.errors import IdempotencyConflict
from ...domain.job import Job
from ...domain.log import Change
from ...domain.values import OnConflict
from ...projections.row import from_row
from ..caller_ports import Order
from ..documents import canonical, digest
from .session import Session
from .tables import StoredRequest

Key: TypeAlias = tuple[str, str]


@define
class Plan:
    """What the orders of one call come to, by place: births, and jobs that stand for them.

    ``moves`` are the changes of holders by id, ``twins`` the places that ask for the same as
    another of the call, ``requests`` the new idempotency keys.
    """

    births: dict[int, Change] = field(factory=dict[int, Change])
    standing: dict[int, UUID] = field(factory=dict[int, UUID])
    twins: dict[int, int] = field(factory=dict[int, int])
    moves: dict[UUID, Change] = field(factory=dict[UUID, Change])
    requests: dict[str, int] = field(factory=dict[str, int])


def plan(
    session: Session,
    orders: Sequence[Order],
    births: Mapping[int, Change],
    command: Callable[[Order], Enqueue],
) -> Plan:
    """Lock, then decide.  ``births`` has the change of each single job, by place.

    Raises Held when another transaction has a key, UniqueKeyTaken and IdempotencyConflict.
    """
    made = Plan()
    _requests(session, orders, made)
    wanted = [each for each in births if each not in made.standing and each not in made.twins]
    keyed = [each for each in wanted if orders[each].spec.unique_key is not None]
    holders = _lock_keys(session, orders, keyed) if keyed else {}
    for place in wanted:
        session.lock("job", births[place].after.id)
    meeting: list[int] = []
    for place in wanted:
        key = _key(orders[place])
        if key is not None and key in holders:
            meeting.append(place)
            continue
        made.births[place] = births[place]
        if key is not None:
            holders[key] = births[place].after
    for place in sorted(meeting, key=lambda each: (_replaces(orders[each]), each)):
        _meet(orders[place], place, holders[_key(orders[place]) or ("", "")], made, command)
    return made


def _key(order: Order) -> Key | None:
    key = order.spec.unique_key
    return None if key is None else (order.spec.queue, key)


def _replaces(order: Order) -> bool:
    return order.on_conflict is OnConflict.REPLACE


def _requests(session: Session, orders: Sequence[Order], made: Plan) -> None:
    """Which requests are new, and which jobs have the old ones?"""
    known: dict[str, StoredRequest | None] = {}
    for wanted in sorted({each.idempotency_key for each in orders if each.idempotency_key}):
        known[wanted] = session.requests.get(wanted)
        if known[wanted] is None:
            session.lock("request", wanted)
    for place, order in enumerate(orders):
        key = order.idempotency_key
        if key is None:
            continue
        old, first = known[key], made.requests.setdefault(key, place)
        if old is None and first == place:
            continue
        stored = old or StoredRequest(orders[first].spec.id, digest(orders[first].spec))
        if stored.digest != digest(order.spec):
            raise IdempotencyConflict(key, stored.job_id)
        if old is None:
            made.twins[place] = first
        else:
            made.standing[place] = stored.job_id
    for stale in [each for each, old in known.items() if old is not None]:
        del made.requests[stale]


def _lock_keys(session: Session, orders: Sequence[Order], places: Sequence[int]) -> dict[Key, Job]:
    """Lock the free keys, in order, and the jobs to be moved; who has the others?"""
    rows = {
        (row.spec.queue, row.spec.unique_key): row
        for row in session.jobs.values()
        if row.spec.unique_key is not None
    }
    holders: dict[Key, Job] = {}
    moving: list[UUID] = []
    for key, place in sorted((key, each) for each in places if (key := _key(orders[each]))):
        if key not in rows:
            session.lock("unique", key)
            continue
        row = rows[key]
        holders[key] = from_row(row.spec, row.state)
        if _replaces(orders[place]):
            moving.append(row.spec.id)
    for job_id in sorted(moving):
        session.lock("job", job_id)
    return holders


def _meet(
    order: Order, place: int, holder: Job, made: Plan, command: Callable[[Order], Enqueue]
) -> None:
    same = canonical(holder.spec.args) == canonical(order.spec.args)
    change = meet(holder, command(order), order.on_conflict, same)
    # Of several orders for one job the last one says when.
    if change is not None:
        made.moves[holder.id] = change
    elif _replaces(order):
        made.moves.pop(holder.id, None)
    made.standing[place] = holder.id
