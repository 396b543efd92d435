"""Questions that lock nothing: jobs by id, streams, and what an idle worker waits for.

``offset 0`` keeps a lateral question a question for each id; without it the planner may join.
"""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT, SUSPECT, WAITING, job_columns
from .pick import NO_FLOOR


def rows(schema: Schema) -> str:
    """The rows of these jobs; the finished have none."""
    return f"""
select {job_columns("j")}
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select j.* from {schema.table("jobs")} as j where j.id = i.id offset 0
       ) as j
"""


def streams(schema: Schema) -> str:
    """Every event of these jobs, by job and version."""
    return f"""
select e.job_id, e.version, e.event_id, e.xid, {", ".join(f"e.{name}" for name in EVENT)}
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select e.* from {schema.table("job_events")} as e where e.job_id = i.id offset 0
       ) as e
 order by e.job_id, e.version
"""


def outlook(schema: Schema) -> str:
    """What time is it, what is due next, when does the next lease end, does the inbox hold items?

    One probe of an index for each queue, priority and index.
    """
    return f"""
select pg_catalog.clock_timestamp() as at,
       (select pg_catalog.min(least(plain.due_at, suspect.due_at))
          from unnest(%(queues)s::text[]) as q (queue)
         cross join generate_series(9, 0, -1) as p (priority)
          left join lateral ({_first(schema, WAITING, "%(since)s")}
               ) as plain on true
          left join lateral ({_first(schema, SUSPECT, NO_FLOOR)}
               ) as suspect on true
       ) as next_due,
       (select j.due_at
          from {schema.table("jobs")} as j
         where j.state = 'leased' and j.format <= %(format)s
         order by j.due_at limit 1) as next_lease_end,
       (select i.id
          from {schema.table("group_inbox")} as i
         where i.format <= %(format)s
         order by i.id limit 1) is not null as inbox
"""


def outlook_and_strangers(schema: Schema) -> str:
    """Both in one statement: the names and formats as two lists, or nulls."""
    return f"""
select seen.*, met.names, met.formats
  from ({outlook(schema).strip()}
       ) as seen
 cross join (
       select pg_catalog.array_agg(stranger.name) as names,
              pg_catalog.array_agg(stranger.newer) as formats
         from ({strangers(schema).strip()}
              ) as stranger
       ) as met
"""


def strangers(schema: Schema) -> str:
    """Which names and formats that we do not know are among the first due jobs?

    The first of all and the first from ``since`` on, ``limit`` of each queue and priority: what
    stands behind so many others is met when those are gone.
    """
    return f"""
select distinct sampled.name collate "C",
       case when sampled.format > %(format)s then sampled.format end as newer
  from unnest(%(queues)s::text[]) as q (queue)
 cross join generate_series(9, 0, -1) as p (priority)
 cross join unnest(array['-infinity', %(since)s]::timestamptz[]) as f (since)
 cross join lateral (
       select j.name, j.format
         from {schema.table("jobs")} as j
        where j.queue = q.queue and j.priority = p.priority::smallint
          and {WAITING}
          and j.due_at <= pg_catalog.statement_timestamp() and j.due_at >= f.since
        order by j.due_at, j.seq
        limit %(limit)s
       ) as sampled
 where sampled.name <> all (%(names)s::text[]) or sampled.format > %(format)s
 order by 1, 2
 limit 100
"""


def _first(schema: Schema, predicate: str, since: str) -> str:
    return f"""
               select j.due_at
                 from {schema.table("jobs")} as j
                where j.queue = q.queue and j.priority = p.priority::smallint
                  and {predicate}
                  and j.due_at >= {since}::timestamptz
                  and j.name = any (%(names)s::text[]) and j.format <= %(format)s
                order by j.due_at, j.seq
                limit 1"""
