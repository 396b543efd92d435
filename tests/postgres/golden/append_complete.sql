with input as (
    select * from unnest(%(ids)s::uuid[], %(versions)s::bigint[]) as i (id, version)
), hit as (
    delete from "leasebook"."jobs" as j using input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.lease, j.has_waiter
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, lease)
    select hit.id, hit.version + 1, %(at)s::timestamptz, %(kind)s, hit.lease
      from hit order by hit.id
)
select pg_catalog.clock_timestamp() as at,
       pg_catalog.count(*) as hits,
       case when pg_catalog.count(*) < %(size)s then pg_catalog.array_agg(hit.id) end as ids,
       pg_catalog.array_agg(hit.id) filter (where hit.has_waiter) as waited_for
  from hit
