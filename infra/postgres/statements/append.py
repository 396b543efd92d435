"""The one write path: compare and set on ``jobs.version``, and the events, in one statement.

Each statement takes its input as arrays in order of job id and answers one row: the time after the
last lock, how many streams stood where they should, when some did not, the ids of those that did,
and the ids of those that other jobs wait for.

Rows are found by ``id = any (array[...])``, which no planner can turn round: it visits the
input in its order and looks each row up, so that rows are locked in order of id.  (``id = i.id``
lets it walk the whole table instead, when its statistics still call the table empty.)
"""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT, SPEC, STATE, wrapped

ANSWER = """select pg_catalog.clock_timestamp() as at,
       pg_catalog.count(*) as hits,
       case when pg_catalog.count(*) < %(size)s then pg_catalog.array_agg(hit.id) end as ids,
       pg_catalog.array_agg(hit.id) filter (where hit.has_waiter) as waited_for
  from hit"""

#: The types in which a batch is given.  JSON arrives as text, so that it is stored as it was
#: written; ``items`` arrives as the text of an array.
TYPES = {
    "id": "uuid",
    "priority": "smallint",
    "enqueued_at": "timestamptz",
    "retries": "bigint",
    "timeout": "float8",
    "lease_seconds": "float8",
    "expires_at": "timestamptz",
    "group_window": "float8",
    "group_max_hold": "float8",
    "group_max_size": "bigint",
    "hold_until": "timestamptz",
    "version": "bigint",
    "due_at": "timestamptz",
    "at": "timestamptz",
    "suspect": "boolean",
    "held": "boolean",
    "starts": "bigint",
    "attempts": "bigint",
    "interruptions": "bigint",
    "lease": "bigint",
    "started_at": "timestamptz",
    "after": "uuid",
    "sequence": "bigint",
    "format": "smallint",
    "blocked_by": "uuid",
    "blocked_due": "timestamptz",
}

#: How a column is made from the text it arrives as.
CASTS = {"args": "::json", "data": "::json", "items": "::json[]", "effects": "::json"}

#: State that is null in the input where it stays as it is, so that a large value is not written
#: again, and the format, which never gets older.
KEPT = {
    "items": "coalesce(i.items::json[], j.items)",
    "effects": "coalesce(i.effects::json, j.effects)",
    "format": "greatest(i.format, j.format)",
}


def complete(schema: Schema) -> str:
    """Which of these jobs, leased at these versions, end now with nothing to tell?

    The row leaves; its lease is the token, because the version says that nothing has changed.
    """
    return f"""
with input as (
    select * from unnest(%(ids)s::uuid[], %(versions)s::bigint[]) as i (id, version)
), hit as (
    delete from {schema.table("jobs")} as j using input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.lease, j.has_waiter
), logged as (
    insert into {schema.table("job_events")} (job_id, version, at, kind, lease)
    select hit.id, hit.version + 1, %(at)s::timestamptz, %(kind)s, hit.lease
      from hit order by hit.id
)
{ANSWER}
"""


def lease(schema: Schema) -> str:
    """Which of these jobs, waiting at these versions, are leased to this worker from now on?"""
    return f"""
with input as (
    select *
      from unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(untils)s::timestamptz[],
                  %(starts)s::bigint[], %(data)s::text[])
        as i (id, version, until, starts, data)
), hit as (
    update {schema.table("jobs")} as j
       set version = i.version + 1, state = 'leased', due_at = i.until, at = %(at)s::timestamptz,
           starts = i.starts, lease = i.version + 1, worker = %(worker)s,
           started_at = %(at)s::timestamptz
      from input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.due_at, i.data, false as has_waiter
), logged as (
    insert into {schema.table("job_events")} (job_id, version, at, kind, due_at, worker, data)
    select hit.id, hit.version, %(at)s::timestamptz, %(kind)s, hit.due_at, %(worker)s,
           hit.data::json
      from hit order by hit.id
)
{ANSWER}
"""


def end(schema: Schema) -> str:
    """Which of these jobs, standing at these versions, leave, and with which event?"""
    given = ("id", "expected", *_event_names())
    return f"""
with input as (
    select *
      from unnest({_arrays(given)})
        as i ({_columns(given)})
), hit as (
    delete from {schema.table("jobs")} as j using input as i
     where j.id = any (array[i.id]) and j.version = i.expected
    returning i.*, j.has_waiter
), {_logged(schema)}
{ANSWER}
"""


def update(schema: Schema) -> str:
    """Which of these jobs, standing at these versions, move on, with their first event?"""
    given = ("id", "expected", *STATE, *_event_names())
    assigned = ",\n           ".join(f"{name} = {KEPT.get(name, f'i.{name}')}" for name in STATE)
    return f"""
with input as (
    select *
      from unnest({_arrays(given)})
        as i ({_columns(given)})
), hit as (
    update {schema.table("jobs")} as j
       set {assigned}
      from input as i
     where j.id = any (array[i.id]) and j.version = i.expected
    returning i.*, j.has_waiter
), {_logged(schema)}
{ANSWER}
"""


def birth(schema: Schema) -> str:
    """Which of these jobs are new, and are born with their first event?

    ``seq`` is the id of that event: the new streams are numbered in order of id, and so are their
    events, so that the n-th row finds its number without a join.  (The question for the stream is
    a scalar one, because ``not exists`` would be planned as a join of the whole log.)
    """
    given = (*SPEC, *STATE, "has_row", *_event_names())
    kept = (*SPEC, *STATE)
    values = wrapped([f"hit.{name}{CASTS.get(name, '')}" for name in kept], indent=11)
    return f"""
with input as (
    select *
      from unnest({_arrays(given)})
        as i ({_columns(given)})
), hit as materialized (
    select pg_catalog.row_number() over (order by i.id) as place, i.*, false as has_waiter
      from input as i
     where (select e.version from {schema.table("job_events")} as e
             where e.job_id = i.id and e.version = 1) is null
), logged as (
    insert into {schema.table("job_events")} (job_id, version, {", ".join(EVENT)})
    select hit.id, 1,
           {_event_values()}
      from hit order by hit.id
    returning job_id, event_id
), numbers as (
    select pg_catalog.array_agg(logged.event_id order by logged.job_id) as event_ids from logged
), born as (
    insert into {schema.table("jobs")} (
           seq, {wrapped(kept, indent=11)})
    select coalesce(hit.sequence, (select event_ids from numbers)[hit.place]),
           {values}
      from hit
     where hit.has_row
     order by hit.id
)
{ANSWER}
"""


def further_events(schema: Schema) -> str:
    """Append the second and later events of changes whose first has just been appended."""
    given = ("id", "version", *_event_names())
    return f"""
insert into {schema.table("job_events")} (job_id, version, {", ".join(EVENT)})
select hit.id, hit.version,
           {_event_values()}
  from unnest({_arrays(given)})
    as hit ({_columns(given)})
 order by hit.id, hit.version
"""


def lock(schema: Schema) -> str:
    """Lock these rows in order of id, and wait for them.

    Needed when several statements of one append meet rows of other writers: each locks in order,
    and all together would not.
    """
    return f"""
select pg_catalog.count(*)
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select j.id from {schema.table("jobs")} as j where j.id = any (array[i.id]) for update
       ) as locked
"""


def locked(schema: Schema) -> str:
    """Which of these rows has somebody else locked?  The others are locked now, without a wait."""
    return f"""
with got as materialized (
    select j.id from {schema.table("jobs")} as j
     where j.id = any (%(ids)s::uuid[])
     order by j.id
       for update skip locked
)
select j.id from {schema.table("jobs")} as j
 where j.id = any (%(ids)s::uuid[]) and j.id not in (select got.id from got)
"""


def _event_names() -> tuple[str, ...]:
    return tuple(f"event_{name}" for name in EVENT)


def _columns(names: tuple[str, ...]) -> str:
    return wrapped(names, indent=14)


def _arrays(names: tuple[str, ...]) -> str:
    return wrapped([f"%({name})s::{_type(name)}[]" for name in names], indent=18)


def _type(name: str) -> str:
    match name:
        case "expected":
            return "bigint"
        case "has_row":
            return "boolean"
        case _:
            return TYPES.get(name.removeprefix("event_"), "text")


def _event_values() -> str:
    return wrapped([f"hit.event_{name}{CASTS.get(name, '')}" for name in EVENT], indent=11)


def _logged(schema: Schema) -> str:
    return f"""logged as (
    insert into {schema.table("job_events")} (job_id, version, {", ".join(EVENT)})
    select hit.id, hit.expected + 1,
           {_event_values()}
      from hit order by hit.id
)"""
