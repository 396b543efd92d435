"""Keyed enqueues: one unfinished or held job for each unique key, one job for each request.

Whoever comes second waits in the unique index until the first has committed or rolled back; nothing
is ever told "taken" by a transaction that may still vanish.  Rows are inserted in order of their
keys, bytewise, so that two batches cannot wait for each other.  No statement here raises an error
because a key is taken: the caller's transaction stays whole.
"""

from __future__ import annotations

from ....projections.row import NEVER
from ..schema.name import Schema
from .enqueue import SPEC
from .order import next_number, shared_locks

#: The input by its documents, with due times, and the verdict on it.
_STAMPED = f"""with stamp as materialized (
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
        as spec ({SPEC}, args json,
                 unique_key text, ordering_key text, blocked_by uuid)
), verdict as materialized (
    select exists (select from input where input.expires_at <= input.due_at) as refused
"""


def accept_keyed(schema: Schema) -> str:
    """Which of these jobs with keys are born, and who has the unique keys of the others?

    ``born`` holds places, from 1; ``held`` is a document of places and holders.  A unique key that
    is visibly taken is answered before a sequence number is drawn.  (Under READ COMMITTED only: an
    older snapshot may show a holder that has ended, so there the index alone is asked.)  A place in
    neither met a holder that this statement could not see.  Numbers are drawn under the shared
    locks of the ordering keys, which are kept to the end of the transaction.

    Each job brings a document of its own: jobs without keys that are not alike come here too.  The
    rest is as in ``accept_jobs``, but that the row comes first, since only it can meet a conflict.
    """
    return f"""
{_STAMPED}), seen as materialized (
    select input.*, j.holder
      from input
      left join lateral (
           select {_document("null::json")} as holder
             from {schema.table("jobs")} as j
            where j.queue = input.queue and j.unique_key = input.unique_key
              and pg_catalog.current_setting('transaction_isolation') = 'read committed'
           offset 0
           ) as j on true
     where not (select refused from verdict)
     order by input.place
), {shared_locks("input.ordering_key", "input")}, numbered as materialized (
    select free.*, {next_number(schema)} as seq
      from (select seen.*, seen.id = any (array(
                   select s.blocked_by from seen as s where s.blocked_by is not null)) as has_waiter
              from seen
             where seen.holder is null and (select locked.keys from locked) >= 0
             order by seen.place) as free
), born as (
    insert into {schema.table("jobs")} (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, after,
           unique_key, ordering_key, on_hold, blocked_by, blocked_due, has_waiter,
           version, state, due_at, at)
    select n.seq,
           n.format, n.id, n.queue, n.priority, n.name, n.args, n.at, n.retries, n.timeout,
           n.lease, n.on_exhausted, n.label, n.owner, n.subject, n.expires_at, n.on_expired,
           n.after, n.unique_key, n.ordering_key, n.on_hold, n.blocked_by,
           case when n.blocked_by is not null then n.due_at end, n.has_waiter, 1, 'queued',
           case when n.blocked_by is null then n.due_at else '{NEVER.isoformat()}' end,
           n.at
      from numbered as n
     order by (n.unique_key is not null), n.queue collate "C", n.unique_key collate "C", n.place
        on conflict (queue, unique_key) where unique_key is not null do nothing
    returning id
), logged as (
    insert into {schema.table("job_events")} (job_id, version, event_id, at, kind, due_at, data)
           overriding system value
    select n.id, 1, n.seq, n.at, %(kind)s, n.due_at, n.data
      from numbered as n
      join born on born.id = n.id
     order by n.place
)
select verdict.refused, (extract(epoch from stamp.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid,
       (select pg_catalog.array_agg(n.place)
          from numbered as n join born on born.id = n.id) as born,
       (select pg_catalog.json_agg(pg_catalog.json_build_array(seen.place, seen.holder))::text
          from seen where seen.holder is not null) as held
  from stamp cross join verdict
"""


def holders(schema: Schema) -> str:
    """Who has these unique keys?  Nothing is locked; a key without a row is free by now."""
    return f"""
select {_document("null::json")}::text as holder
  from unnest(%(queues)s::text[], %(keys)s::text[]) as k (queue, unique_key)
 cross join lateral (
       select j.* from {schema.table("jobs")} as j
        where j.queue = k.queue and j.unique_key = k.unique_key offset 0
       ) as j
"""


def lock_holders(schema: Schema) -> str:
    """Who has these unique keys, so that nobody changes them before this transaction ends?

    They are locked in order of id, as every writer locks; ``moment`` is read after the locks.
    """
    return f"""
with asked as materialized (
    select j.id
      from unnest(%(queues)s::text[], %(keys)s::text[]) as k (queue, unique_key)
     cross join lateral (
           select j.id from {schema.table("jobs")} as j
            where j.queue = k.queue and j.unique_key = k.unique_key offset 0
           ) as j
), j as materialized (
    select j.*
      from {schema.table("jobs")} as j
     where j.id = any (array(select asked.id from asked))
     order by j.id
       for update
)
select {_document("j.args")}::text as holder,
       (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as moment
  from j
"""


def reschedule(schema: Schema) -> str:
    """How many of these jobs, locked and standing at these versions, move to another time?"""
    return f"""
with input as (
    select *
      from unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(ats)s::timestamptz[],
                  %(due_ats)s::timestamptz[])
        as i (id, version, at, due_at)
), hit as (
    update {schema.table("jobs")} as j
       set version = i.version + 1, at = i.at,
           due_at = case when j.blocked_by is null then i.due_at else j.due_at end,
           blocked_due = case when j.blocked_by is not null then i.due_at end
      from input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.at, i.due_at
), logged as (
    insert into {schema.table("job_events")} (job_id, version, at, kind, due_at)
    select hit.id, hit.version, hit.at, %(kind)s, hit.due_at
      from hit order by hit.id
)
select pg_catalog.count(*) from hit
"""


def remember(schema: Schema) -> str:
    """Which of these requests are new?  They belong to these jobs from now on."""
    return f"""
with taken as (
    insert into {schema.table("request_keys")} (key, job_id, digest)
    select i.key, i.id, i.digest
      from unnest(%(keys)s::text[], %(ids)s::uuid[], %(digests)s::text[]) as i (key, id, digest)
     order by i.key collate "C"
        on conflict (key) do nothing
    returning key
)
select (select pg_catalog.array_agg(taken.key) from taken) as keys,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
"""


def recall(schema: Schema) -> str:
    """Which jobs do these requests belong to, and what did they ask for?"""
    return f"""
select r.key, r.job_id::text, r.digest
  from {schema.table("request_keys")} as r
 where r.key = any (%(keys)s::text[])
"""


def adopt(schema: Schema) -> str:
    """Let these new requests belong to jobs that were there before, whose unique key they met."""
    return f"""
update {schema.table("request_keys")} as r
   set job_id = i.id
  from unnest(%(keys)s::text[], %(ids)s::uuid[]) as i (key, id)
 where r.key = any (array[i.key])
"""


def _document(args: str) -> str:
    """What a decision wants to know of a holder; as a text, every driver reads it alike.

    Times are microseconds since 1970.
    """
    times = ",\n".join(
        f"       '{name}', (extract(epoch from j.{name}) * 1000000)::bigint"
        for name in ("enqueued_at", "expires_at", "at")
    )
    return f"""pg_catalog.json_build_object(
       'id', j.id, 'name', j.name, 'queue', j.queue, 'unique_key', j.unique_key,
       'state', j.state, 'version', j.version, 'held', j.held, 'args', {args},
       'due_at', (extract(epoch from coalesce(j.blocked_due, j.due_at)) * 1000000)::bigint,
{times})"""
