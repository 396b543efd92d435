"""What a producer writes, in the caller's transaction: jobs with their first event, and items.

Each order arrives as the document of its ``enqueued`` event, and the columns of the row are read
from that same text: the log and the row cannot say two things.
"""

from __future__ import annotations

from ....projections.row import FORMAT, FORMAT_PLAIN
from ..schema.name import Schema


def stamped_jobs(further: str = "") -> str:
    """How statements that accept jobs begin: the input by its documents, due times, the verdict.

    ``further`` are more columns of the documents, with a comma before each.
    """
    return f"""with stamp as materialized (
    select pg_catalog.clock_timestamp() as at
), input as materialized (
    select i.place, i.id, i.data::json as data, stamp.at, spec.*,
           greatest(stamp.at + i.delay * interval '1 microsecond', i.run_at) as due_at
      from unnest(%(ids)s::text::uuid[], %(run_ats)s::text::timestamptz[],
                  %(delays)s::text::bigint[], %(data)s::text::text[])
           with ordinality as i (id, run_at, delay, data, place)
     cross join stamp
     cross join lateral pg_catalog.json_to_record(i.data::json)
        as spec (queue text, priority smallint, name text, args json, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, after uuid{further})
), verdict as materialized (
    select exists (select from input where input.expires_at <= input.due_at) as refused
"""


def accept_jobs(schema: Schema) -> str:
    """Which time do these jobs get, and do they all start before they expire?  Then they are born.

    One that would expire before it starts is left to the domain to refuse: then nothing is written,
    and ``refused`` is true.  ``delays`` are microseconds.  ``moment`` is the stamp in microseconds
    since 1970.  (Events are numbered in the order of the input, so the n-th row finds its number
    without a join.)
    """
    return f"""
{stamped_jobs()}), logged as (
    insert into {schema.table("job_events")} (job_id, version, at, kind, due_at, data)
    select input.id, 1, input.at, %(kind)s, input.due_at, input.data
      from input
     where not (select refused from verdict)
     order by input.place
    returning event_id
), numbers as materialized (
    select pg_catalog.array_agg(logged.event_id order by logged.event_id) as event_ids from logged
), born as (
    insert into {schema.table("jobs")} (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, after,
           version, state, due_at, at, items)
    select (select event_ids from numbers)[input.place],
           case when input.on_expired is null and input.after is null
                then {FORMAT_PLAIN} else {FORMAT} end,
           input.id, input.queue, input.priority, input.name, input.args, input.at,
           input.retries, input.timeout, input.lease, input.on_exhausted, input.label,
           input.owner, input.subject, input.expires_at, input.on_expired, input.after,
           1, 'queued', input.due_at, input.at, '{{}}'
      from input
     where not (select refused from verdict)
     order by input.place
)
select verdict.refused, (extract(epoch from stamp.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from stamp cross join verdict
"""


def accept_items(schema: Schema) -> str:
    """Which numbers do these items get in the inbox?  They grow in the order of the input.

    Release 0.1 would lose what a group of a newer format is, so it must leave its items alone.
    """
    return f"""
with arrived as (
    insert into {schema.table("group_inbox")}
           (format, queue, name, group_key, subject, item, spec)
    select case when spec.on_expired is null and spec.ordering_key is null
                then {FORMAT_PLAIN} else {FORMAT} end,
           spec.queue, spec.name, spec.group_key, spec.subject, i.item::json, i.spec::json
      from unnest(%(items)s::text::text[], %(specs)s::text::text[])
           with ordinality as i (item, spec, place)
     cross join lateral pg_catalog.json_to_record(i.spec::json)
        as spec (queue text, name text, group_key text, subject text, on_expired text,
                 ordering_key text)
     order by i.place
    returning id
)
select pg_catalog.array_agg(arrived.id order by arrived.id) as ids,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from arrived
"""


def outcomes() -> str:
    """How did these transactions end?  Asked outside any transaction of a caller."""
    return """
select asked.xid, pg_catalog.pg_xact_status(asked.xid::text::xid8) as status
  from unnest(%(xids)s::bigint[]) as asked (xid)
"""
