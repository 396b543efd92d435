"""How jobs ended: kept beside the streams of those with an owner, and in place of pruned ones."""

from __future__ import annotations

from ..schema.name import Schema


def keep(schema: Schema) -> str:
    """Keep how these jobs, which have ended in this transaction, ended."""
    return f"""
insert into {schema.table("job_summaries")} (job_id, status, outcome, name, owner, at)
select i.*
  from unnest(%(ids)s::text::uuid[], %(statuses)s::text::text[], %(outcomes)s::text::text[],
              %(names)s::text::text[], %(owners)s::text::text[], %(ats)s::text::timestamptz[])
    as i (id, status, outcome, name, owner, at)
 order by i.id
on conflict (job_id) do nothing
"""


def of(schema: Schema) -> str:
    """How did this job end?  No row when that is not kept, or it has not."""
    return f"""
select s.job_id, s.status, s.outcome, s.name, s.owner, s.at
  from {schema.table("job_summaries")} as s
 where s.job_id = %(id)s::text::uuid
"""


def standing(schema: Schema) -> str:
    """Where does this job stand: by its row, else by its last event, else by what is kept of it?

    All three are read by one statement, so that nothing slips from one to the next in between.
    """
    return f"""
select (select j.state from {schema.table("jobs")} as j where j.id = asked.id) as state,
       (select e.kind from {schema.table("job_events")} as e
         where e.job_id = asked.id order by e.version desc limit 1) as kind,
       (select s.status from {schema.table("job_summaries")} as s
         where s.job_id = asked.id) as status
  from (select %(id)s::text::uuid) as asked (id)
"""


def prune(schema: Schema) -> str:
    """Prune the next jobs; how far that went, and what was found."""
    return f"""
select p.last_job, p.looked, p.pruned, p.kept, p.reader
  from {schema.table("prune")}(
       pg_catalog.make_interval(secs => %(seconds)s::float8), %(after)s::uuid, %(batch)s::int) as p
"""
