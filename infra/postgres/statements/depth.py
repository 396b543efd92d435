"""Counting the whole queue, and whose turn it is to count.

Unlike the worker's other statements these may read a whole table: they run once a minute, and
`unbound` puts back for them what the frame of a transaction switches off.
"""

from __future__ import annotations

from ..schema.name import Schema


def unbound() -> str:
    """Let the planner scan tables until this transaction ends."""
    return """
select pg_catalog.set_config('enable_seqscan', 'on', true),
       pg_catalog.set_config('enable_bitmapscan', 'on', true)
"""


def due_again(schema: Schema) -> str:
    """Is this duty due again, %(seconds)s after it was last done?

    One row when it is, which stamps it with the present time; else none.  A stamp from the future
    is one of a clock that has been put back since.
    """
    return f"""
insert into {schema.table("checkpoints")} as c (name, at)
values (%(name)s, pg_catalog.clock_timestamp())
on conflict (name) do update
   set at = excluded.at
 where excluded.at - c.at >= %(seconds)s * interval '1 second' or c.at > excluded.at
returning true
"""


def seconds_left(schema: Schema) -> str:
    """In how many seconds is this duty due again?"""
    return f"""
select %(seconds)s - extract(epoch from pg_catalog.clock_timestamp() - c.at)::float8
  from {schema.table("checkpoints")} as c
 where c.name = %(name)s
"""


def tallies(schema: Schema) -> str:
    """How many jobs are there of each state, held or not, due or not, blocked or not?

    The row without a state is of the items in the inbox.
    """
    return f"""
with clock as materialized (
    select pg_catalog.clock_timestamp() as at
)
select j.state, j.held, j.due_at <= clock.at as reached, pg_catalog.count(*),
       j.blocked_by is not null as stopped
  from {schema.table("jobs")} as j
 cross join clock
 group by 1, 2, 3, 5
union all
select null, null, null, pg_catalog.count(*), null
  from {schema.table("group_inbox")}
"""
