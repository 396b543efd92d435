"""What a producer writes, in the caller's transaction: jobs with their first event, and items.

Jobs arrive as the documents of their ``enqueued`` events, and the columns of the row are read from
that same text: the log and the row cannot say two things.
"""

from __future__ import annotations

from ..schema.name import Schema
from .order import next_number, shared_locks

#: The members of a document that are columns of every row.
SPEC = """queue text, priority smallint, name text, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, on_hold text,
                 after uuid"""


def accept_jobs(schema: Schema) -> str:
    """Which time do these jobs get, and do they start before they expire?  Then they are born.

    They differ in id and arguments only.  What they have in common arrives once: ``head`` is their
    document but for its last member, the arguments.  ``delay`` is in microseconds.

    Those that would expire before they start are left to the domain to refuse: then nothing is
    written, and ``refused`` is true.  ``moment`` is the stamp in microseconds since 1970.  Numbers
    are drawn in the order of the input, and there is but one head: no sort is needed.
    """
    return f"""
with head as materialized (
    select timed.*, (timed.expires_at <= timed.due_at) is true as refused
      from (select clock.at, spec.*,
                   pg_catalog.left(%(head)s::text, -1) || ',"args":' as opening,
                   greatest(clock.at + %(delay)s::text::bigint * interval '1 microsecond',
                            %(run_at)s::text::timestamptz) as due_at
              from (select pg_catalog.clock_timestamp() as at offset 0) as clock
             cross join lateral pg_catalog.json_to_record(%(head)s::text::json)
                as spec ({SPEC})) as timed
), input as materialized (
    select i.id, i.args, {next_number(schema)} as seq
      from unnest(%(ids)s::text::uuid[], %(args)s::text::text[]) as i (id, args)
     where not (select refused from head)
), logged as (
    insert into {schema.table("job_events")} (job_id, version, event_id, at, kind, due_at, data)
           overriding system value
    select input.id, 1, input.seq, head.at, %(kind)s, head.due_at,
           (head.opening || input.args || '}}')::json
      from input cross join head
), born as (
    insert into {schema.table("jobs")} (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, on_hold,
           after, version, state, due_at, at)
    select input.seq, %(format)s::text::smallint, input.id, head.queue, head.priority, head.name,
           input.args::json, head.at, head.retries, head.timeout, head.lease, head.on_exhausted,
           head.label, head.owner, head.subject, head.expires_at, head.on_expired, head.on_hold,
           head.after, 1, 'queued', head.due_at, head.at
      from input cross join head
)
select head.refused, (extract(epoch from head.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from head
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
