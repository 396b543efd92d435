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
), input as (
    select i.place, i.id, i.args, i.chosen
      from unnest(%(ids)s::text::uuid[], %(args)s::text::text[], %(chosen)s::text::bigint[])
           with ordinality as i (id, args, chosen, place)
), numbered as materialized (
    select input.*, pg_catalog.nextval((select pg_catalog.pg_get_serial_sequence('"leasebook"."job_events"', 'event_id')::regclass)) as seq
      from input
), logged as (
    insert into "leasebook"."job_events" (job_id, version, event_id, at, kind, due_at, data)
           overriding system value
    select input.id, 1, input.seq, head.at, %(kind)s, head.due_at, (head.opening || input.args || '}')::json
      from numbered as input full join head on head.number = input.chosen
     where not (select refused from verdict)
     order by input.seq
), born as (
    insert into "leasebook"."jobs" (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, on_hold,
           after, version, state, due_at, at)
    select input.seq, head.format, input.id, head.queue, head.priority, head.name,
           input.args::json, head.at, head.retries, head.timeout, head.lease, head.on_exhausted,
           head.label, head.owner, head.subject, head.expires_at, head.on_expired, head.on_hold,
           head.after, 1, 'queued', head.due_at, head.at
      from numbered as input full join head on head.number = input.chosen
     where not (select refused from verdict)
     order by input.seq
)
select verdict.refused, (extract(epoch from stamp.at) * 1000000)::bigint as moment,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from stamp cross join verdict
