"""What a running handler does to its own job, in a transaction of its own.

One job at a time, found by its id and its lease token; every value travels as text.
"""

from __future__ import annotations

from ..schema.name import Schema
from .order import waiting_rows

HELD = """where j.id = %(id)s::text::uuid and j.lease = %(lease)s::bigint"""
LOGGED = """values (%(id)s::text::uuid, %(version)s::bigint, %(at)s::text::timestamptz,
            %(kind)s::text, %(lease)s::bigint, %(data)s::text::json)"""


def hold(schema: Schema, *, shared: bool) -> str:
    """Does this run still have its lease?  Then nobody ends it before the transaction does.

    Several fences may hold one row together.  The time is read after the lock.
    """
    lock = "for share" if shared else "for no key update"
    return f"""
with held as materialized (
    select j.version, j.at, j.effects
      from {schema.table("jobs")} as j
     {HELD}
       {lock}
)
select held.version, held.effects::text,
       (extract(epoch from held.at) * 1000000)::bigint as at,
       (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as now
  from held
"""


def current(schema: Schema) -> str:
    """Under which lease does this job run now?"""
    return f"""
select j.lease from {schema.table("jobs")} as j where j.id = %(id)s::text::uuid
"""


def receive(schema: Schema) -> str:
    """Keep a receipt in the row that this transaction has locked, and its event in the log."""
    return f"""
with kept as (
    update {schema.table("jobs")} as j
       set version = %(version)s::bigint, at = %(at)s::text::timestamptz,
           effects = %(effects)s::text::json,
           format = greatest(j.format, %(format)s::smallint)
     {HELD}
)
insert into {schema.table("job_events")} (job_id, version, at, kind, lease, data)
{LOGGED}
"""


def complete(schema: Schema) -> str:
    """End the job whose row this transaction has locked; whether another one waits for it."""
    return f"""
with gone as (
    delete from {schema.table("jobs")} as j
     {HELD}
    returning j.has_waiter
), logged as (
    insert into {schema.table("job_events")} (job_id, version, at, kind, lease, data)
    {LOGGED}
)
select gone.has_waiter from gone
"""


def waiting(schema: Schema) -> str:
    """Whom did this job, which has just succeeded, keep from starting?  They are waited for.

    Times are microseconds since 1970.
    """
    ended = "array[%(id)s::text::uuid]"
    return f"""
with {waiting_rows(schema, ended, ended, "for update")}
select locked.id::text, locked.state, locked.version,
       (extract(epoch from locked.at) * 1000000)::bigint as at,
       (extract(epoch from coalesce(locked.blocked_due, locked.due_at)) * 1000000)::bigint
           as due_at,
       locked.held, locked.outcome, locked.blocked_by::text
  from locked
 order by locked.id
"""


def let_go_on(schema: Schema) -> str:
    """Let these jobs, which this transaction has locked, be due again."""
    return f"""
with input as (
    select *
      from unnest(%(ids)s::text::uuid[], %(versions)s::text::bigint[], %(states)s::text::text[],
                  %(ats)s::text::timestamptz[], %(due_ats)s::text::timestamptz[])
        as i (id, version, state, at, due_at)
), moved as (
    update {schema.table("jobs")} as j
       set version = i.version, state = i.state, at = i.at, due_at = i.due_at,
           held = false, outcome = null, blocked_by = null, blocked_due = null
      from input as i
     where j.id = any (array[i.id])
    returning j.id, j.version, j.at, j.due_at
)
insert into {schema.table("job_events")} (job_id, version, at, kind, due_at)
select moved.id, moved.version, moved.at, %(kind)s, moved.due_at
  from moved order by moved.id
"""
