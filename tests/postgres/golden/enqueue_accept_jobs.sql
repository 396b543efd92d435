with stamp as materialized (
    select pg_catalog.clock_timestamp() as at
), head as materialized (
    select h.number, h.format, stamp.at, spec.*,
           pg_catalog.left(h.document, -1) || ',"args":' as opening,
           greatest(stamp.at + h.delay * interval '1 microsecond', h.run_at) as due_at
      from unnest(%(run_ats)s::text::timestamptz[], %(delays)s::text::bigint[],
                  %(formats)s::text::smallint[], %(heads)s::text::text[])
           with ordinality as h (run_at, delay, format, document, number)
     cross join stamp
     cross join lateral pg_catalog.json_to_record(h.document::json)
        as spec (queue text, priority smallint, name text, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, on_hold text,
                 after uuid)
), verdict as materialized (
    select exists (select from head where head.expires_at <= head.due_at) as refused
), input as materialized (
    select i.place, i.id, i.args, i.chosen
      from unnest(%(ids)s::text::uuid[], %(args)s::text::text[], %(chosen)s::text::bigint[])
           with ordinality as i (id, args, chosen, place)
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, due_at, data)
    select input.id, 1, head.at, %(kind)s, head.due_at, (head.opening || input.args || '}')::json
      from input full join head on head.number = input.chosen
     where not (select refused from verdict)
     order by input.place
    returning event_id
), numbers as materialized (
    select pg_catalog.array_agg(logged.event_id order by logged.event_id) as event_ids from logged
), born as (
    insert into "leasebook"."jobs" (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, on_hold,
           after, version, state, due_at, at)
    select (select event_ids from numbers)[input.place],
           head.format, input.id, head.queue, head.priority, head.name, input.args::json, head.at,
           head.retries, head.timeout, head.lease, head.on_exhausted, head.label,
           head.owner, head.subject, head.expires_at, head.on_expired, head.on_hold,
           head.after, 1, 'queued', head.due_at, head.at
      from input full join head on head.number = input.chosen
     where not (select refused from verdict)
     order by input.place
)
select verdict.refused, (extract(epoch from stamp.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from stamp cross join verdict
