"""What a running handler does to its own job, in a transaction of its own.

One job at a time, found by its id and its lease token; every value travels as text.
"""

from __future__ import annotations

from ..schema.name import Schema

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
