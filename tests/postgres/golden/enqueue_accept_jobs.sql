with head as materialized (
    select timed.*, (timed.expires_at <= timed.due_at) is true as refused
      from (select clock.at, spec.*,
                   pg_catalog.left(%(head)s::text, -1) || ',"args":' as opening,
                   greatest(clock.at + %(delay)s::text::bigint * interval '1 microsecond',
                            %(run_at)s::text::timestamptz) as due_at
              from (select pg_catalog.clock_timestamp() as at offset 0) as clock
             cross join lateral pg_catalog.json_to_record(%(head)s::text::json)
                as spec (queue text, priority smallint, name text, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, on_hold text,
                 after uuid)) as timed
), input as materialized (
    select i.id, i.args, pg_catalog.nextval('"leasebook"."job_events_event_id_seq"'::regclass) as seq
      from unnest(%(ids)s::text::uuid[], %(args)s::text::text[]) as i (id, args)
     where not (select refused from head)
), logged as (
    insert into "leasebook"."job_events" (job_id, version, event_id, at, kind, due_at, data)
           overriding system value
    select input.id, 1, input.seq, head.at, %(kind)s, head.due_at,
           (head.opening || input.args || '}')::json
      from input cross join head
), born as (
    insert into "leasebook"."jobs" (
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
