"""What people ask: how deep the queue is, which jobs are there, what the log holds."""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT, job_columns


def now() -> str:
    """The database's time."""
    return "select pg_catalog.clock_timestamp()"


def stats(schema: Schema) -> str:
    """By queue: what is due, running, waiting and for what, held, and still in the inbox.

    A job that is blocked behind another counts as blocked only; its due time never comes.
    """
    return f"""
with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), standing as (
    select j.queue,
           pg_catalog.count(*) filter (where waiting and j.due_at <= clock.at) as due,
           pg_catalog.count(*) filter (where j.state = 'leased') as running,
           pg_catalog.count(*) filter (where later and j.state = 'retry-wait') as retrying,
           pg_catalog.count(*) filter (where later and j.state = 'grouped') as grouped,
           pg_catalog.count(*) filter (where waiting and j.blocked_by is not null) as blocked,
           pg_catalog.count(*) filter (where later and j.state = 'queued') as delayed,
           pg_catalog.count(*) filter (where j.held) as held,
           pg_catalog.min(j.due_at) filter (where waiting and j.due_at <= clock.at) as oldest_due
      from {schema.table("jobs")} as j
     cross join clock
     cross join lateral (select j.state <> 'leased' and not j.held) as w (waiting)
     cross join lateral (
           select waiting and j.blocked_by is null and j.due_at > clock.at) as l (later)
     group by j.queue
), arriving as (
    select i.queue, pg_catalog.count(*) as items
      from {schema.table("group_inbox")} as i
     group by i.queue
)
select coalesce(s.queue, a.queue), coalesce(s.due, 0), coalesce(s.running, 0),
       coalesce(s.retrying, 0), coalesce(s.grouped, 0), coalesce(s.blocked, 0),
       coalesce(s.delayed, 0), coalesce(s.held, 0), coalesce(a.items, 0), s.oldest_due
  from standing as s
  full join arriving as a using (queue)
 order by 1
"""


def jobs(schema: Schema) -> str:
    """Unfinished and held jobs that match what is given, the next due first."""
    return f"""
select {job_columns("j")}
  from {schema.table("jobs")} as j
 where (%(queue)s::text is null or j.queue = %(queue)s)
   and (%(name)s::text is null or j.name = %(name)s)
   and (%(state)s::text is null or j.state = %(state)s)
 order by j.due_at, j.seq
 limit %(limit)s
"""


def log(schema: Schema) -> str:
    """Every event by job and version."""
    return f"""
select e.job_id, e.version, e.event_id, e.xid, {", ".join(f"e.{name}" for name in EVENT)}
  from {schema.table("job_events")} as e
 order by e.job_id, e.version
"""


def rows(schema: Schema) -> str:
    """The whole claim table with its sequence numbers and what it keeps beside the job."""
    return f"""
select j.seq, j.suspect, j.has_waiter, {job_columns("j")}
  from {schema.table("jobs")} as j
"""


def counts(schema: Schema) -> str:
    """How many events of each kind the log holds, and how many lines of each kind the audit log."""
    return f"""
select e.kind, pg_catalog.count(*) from {schema.table("job_events")} as e group by e.kind
 union all
select a.kind, pg_catalog.count(*) from {schema.table("audit_log")} as a group by a.kind
"""
