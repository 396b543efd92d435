with input as (
    select *
      from unnest(%(id)s::uuid[], %(expected)s::bigint[], %(event_kind)s::text[],
                  %(event_at)s::timestamptz[], %(event_due_at)s::timestamptz[],
                  %(event_lease)s::bigint[], %(event_worker)s::text[], %(event_data)s::text[])
        as i (id, expected, event_kind, event_at, event_due_at, event_lease, event_worker,
              event_data)
), hit as (
    delete from "leasebook"."jobs" as j using input as i
     where j.id = any (array[i.id]) and j.version = i.expected
    returning i.*, j.has_waiter
), logged as (
    insert into "leasebook"."job_events" (job_id, version, kind, at, due_at, lease, worker, data)
    select hit.id, hit.expected + 1,
           hit.event_kind, hit.event_at, hit.event_due_at, hit.event_lease, hit.event_worker,
           hit.event_data::json
      from hit order by hit.id
)
select pg_catalog.clock_timestamp() as at,
       pg_catalog.count(*) as hits,
       case when pg_catalog.count(*) < %(size)s then pg_catalog.array_agg(hit.id) end as ids,
       pg_catalog.array_agg(hit.id) filter (where hit.has_waiter) as waited_for
  from hit
