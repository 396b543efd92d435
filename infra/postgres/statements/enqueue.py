"""What a producer writes, in the caller's transaction: jobs with their first event, and items.

Each order arrives as the document of its ``enqueued`` event, and the columns of the row are read
from that same text: the log and the row cannot say two things.
"""

from __future__ import annotations

from ..schema.name import Schema
from .order import next_number, shared_locks


def stamped_jobs(further: str = "") -> str:
    """How statements that accept jobs begin: the input by its documents, due times, the verdict.

    ``further`` are more columns of the documents, with a comma before each.
    """
    return f"""with stamp as materialized (
    select pg_catalog.clock_timestamp() as at
), input as materialized (
    select i.place, i.id, i.format, i.data::json as data, stamp.at, spec.*,
           greatest(stamp.at + i.delay * interval '1 microsecond', i.run_at) as due_at
      from unnest(%(ids)s::text::uuid[], %(run_ats)s::text::timestamptz[],
                  %(delays)s::text::bigint[], %(formats)s::text::smallint[],
                  %(data)s::text::text[])
           with ordinality as i (id, run_at, delay, format, data, place)
     cross join stamp
     cross join lateral pg_catalog.json_to_record(i.data::json)
        as spec (queue text, priority smallint, name text, args json, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, on_hold text,
                 after uuid{further})
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
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, on_hold,
           after, version, state, due_at, at, items)
    select (select event_ids from numbers)[input.place],
           input.format, input.id, input.queue, input.priority, input.name, input.args, input.at,
           input.retries, input.timeout, input.lease, input.on_exhausted, input.label,
           input.owner, input.subject, input.expires_at, input.on_expired, input.on_hold,
           input.after, 1, 'queued', input.due_at, input.at, '{{}}'
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

    An item of a key whose groups run one after another draws its place in that order, too, from
    the sequence that numbers jobs, under the key's shared lock.  Who knows the first layout only
    would lose what is new in the group of such an item, so its format keeps that from the inbox.
    """
    return f"""
with input as materialized (
    select i.place, i.format, i.item::json as item, i.spec::json as document, spec.*
      from unnest(%(items)s::text::text[], %(formats)s::text::smallint[],
                  %(specs)s::text::text[])
           with ordinality as i (item, format, spec, place)
     cross join lateral pg_catalog.json_to_record(i.spec::json)
        as spec (queue text, name text, group_key text, subject text, ordering_key text)
     order by i.place
), {shared_locks("input.ordering_key", "input")}, arrived as (
    insert into {schema.table("group_inbox")}
           (format, queue, name, group_key, subject, item, spec, ordering_key, sequence)
    select numbered.format, numbered.queue, numbered.name, numbered.group_key,
           numbered.subject, numbered.item, numbered.document, numbered.ordering_key,
           numbered.sequence
      from (select input.*,
                   case when input.ordering_key is not null
                        then {next_number(schema)} end as sequence
              from input
             where (select locked.keys from locked) >= 0
             order by input.place) as numbered
     order by numbered.place
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
