with asked as materialized (
    select j.id
      from unnest(%(queues)s::text[], %(keys)s::text[]) as k (queue, unique_key)
     cross join lateral (
           select j.id from "leasebook"."jobs" as j
            where j.queue = k.queue and j.unique_key = k.unique_key offset 0
           ) as j
), j as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.id = any (array(select asked.id from asked))
     order by j.id
       for update
)
select pg_catalog.json_build_object(
       'id', j.id, 'name', j.name, 'queue', j.queue, 'unique_key', j.unique_key,
       'state', j.state, 'version', j.version, 'held', j.held, 'args', j.args,
       'due_at', (extract(epoch from coalesce(j.blocked_due, j.due_at)) * 1000000)::bigint,
       'enqueued_at', (extract(epoch from j.enqueued_at) * 1000000)::bigint,
       'expires_at', (extract(epoch from j.expires_at) * 1000000)::bigint,
       'at', (extract(epoch from j.at) * 1000000)::bigint)::text as holder,
       (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as moment
  from j
