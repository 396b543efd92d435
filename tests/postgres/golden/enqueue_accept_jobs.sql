with stamp as materialized (
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
                 after uuid)
), verdict as materialized (
    select exists (select from input where input.expires_at <= input.due_at) as refused
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, due_at, data)
    select input.id, 1, input.at, %(kind)s, input.due_at, input.data
      from input
     where not (select refused from verdict)
     order by input.place
    returning event_id
), numbers as materialized (
    select pg_catalog.array_agg(logged.event_id order by logged.event_id) as event_ids from logged
), born as (
    insert into "leasebook"."jobs" (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, on_hold,
           after, version, state, due_at, at, items)
    select (select event_ids from numbers)[input.place],
           input.format, input.id, input.queue, input.priority, input.name, input.args, input.at,
           input.retries, input.timeout, input.lease, input.on_exhausted, input.label,
           input.owner, input.subject, input.expires_at, input.on_expired, input.on_hold,
           input.after, 1, 'queued', input.due_at, input.at, '{}'
      from input
     where not (select refused from verdict)
     order by input.place
)
select verdict.refused, (extract(epoch from stamp.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from stamp cross join verdict
