with input as (
    select *
      from unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(untils)s::timestamptz[],
                  %(starts)s::bigint[], %(data)s::text[])
        as i (id, version, until, starts, data)
), hit as (
    update "leasebook"."jobs" as j
       set version = i.version + 1, state = 'leased', due_at = i.until, at = %(at)s::timestamptz,
           starts = i.starts, lease = i.version + 1, worker = %(worker)s,
           started_at = %(at)s::timestamptz
      from input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.due_at, i.data, false as has_waiter
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, due_at, worker, data)
    select hit.id, hit.version, %(at)s::timestamptz, %(kind)s, hit.due_at, %(worker)s,
           hit.data::json
      from hit order by hit.id
)
select pg_catalog.clock_timestamp() as at,
       pg_catalog.count(*) as hits,
       case when pg_catalog.count(*) < %(size)s then pg_catalog.array_agg(hit.id) end as ids,
       pg_catalog.array_agg(hit.id) filter (where hit.has_waiter) as waited_for
  from hit
