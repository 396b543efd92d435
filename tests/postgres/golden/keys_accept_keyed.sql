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
        as spec (queue text, priority smallint, name text, retries bigint,
                 timeout float8, lease float8, on_exhausted text, label text, owner text,
                 subject text, expires_at timestamptz, on_expired text, on_hold text,
                 after uuid, args json,
                 unique_key text, ordering_key text, blocked_by uuid)
), verdict as materialized (
    select exists (select from input where input.expires_at <= input.due_at) as refused
), seen as materialized (
    select input.*, j.holder
      from input
      left join lateral (
           select pg_catalog.json_build_object(
       'id', j.id, 'name', j.name, 'queue', j.queue, 'unique_key', j.unique_key,
       'state', j.state, 'version', j.version, 'held', j.held, 'args', null::json,
       'due_at', (extract(epoch from coalesce(j.blocked_due, j.due_at)) * 1000000)::bigint,
       'enqueued_at', (extract(epoch from j.enqueued_at) * 1000000)::bigint,
       'expires_at', (extract(epoch from j.expires_at) * 1000000)::bigint,
       'at', (extract(epoch from j.at) * 1000000)::bigint) as holder
             from "leasebook"."jobs" as j
            where j.queue = input.queue and j.unique_key = input.unique_key
              and pg_catalog.current_setting('transaction_isolation') = 'read committed'
           offset 0
           ) as j on true
     where not (select refused from verdict)
     order by input.place
), locked as materialized (
    select pg_catalog.count(pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'order', k.key), 0))) as keys
      from (select distinct input.ordering_key as key from input
             where input.ordering_key is not null order by 1) as k
), numbered as materialized (
    select free.*, pg_catalog.nextval('"leasebook"."job_events_event_id_seq"'::regclass) as seq
      from (select seen.*, seen.id = any (array(
                   select s.blocked_by from seen as s where s.blocked_by is not null)) as has_waiter
              from seen
             where seen.holder is null and (select locked.keys from locked) >= 0
             order by seen.place) as free
), born as (
    insert into "leasebook"."jobs" (
           seq, format, id, queue, priority, name, args, enqueued_at, retries, timeout,
           lease_seconds, on_exhausted, label, owner, subject, expires_at, on_expired, after,
           unique_key, ordering_key, on_hold, blocked_by, blocked_due, has_waiter,
           version, state, due_at, at)
    select n.seq,
           n.format, n.id, n.queue, n.priority, n.name, n.args, n.at, n.retries, n.timeout,
           n.lease, n.on_exhausted, n.label, n.owner, n.subject, n.expires_at, n.on_expired,
           n.after, n.unique_key, n.ordering_key, n.on_hold, n.blocked_by,
           case when n.blocked_by is not null then n.due_at end, n.has_waiter, 1, 'queued',
           case when n.blocked_by is null then n.due_at else '9999-12-31T00:00:00+00:00' end,
           n.at
      from numbered as n
     order by (n.unique_key is not null), n.queue collate "C", n.unique_key collate "C", n.place
        on conflict (queue, unique_key) where unique_key is not null do nothing
    returning id
), logged as (
    insert into "leasebook"."job_events" (job_id, version, event_id, at, kind, due_at, data)
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
