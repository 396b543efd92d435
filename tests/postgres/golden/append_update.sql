with input as (
    select *
      from unnest(%(id)s::uuid[], %(expected)s::bigint[], %(format)s::smallint[],
                  %(version)s::bigint[], %(state)s::text[], %(due_at)s::timestamptz[],
                  %(at)s::timestamptz[], %(suspect)s::boolean[], %(held)s::boolean[],
                  %(starts)s::bigint[], %(attempts)s::bigint[], %(interruptions)s::bigint[],
                  %(lease)s::bigint[], %(worker)s::text[], %(started_at)s::timestamptz[],
                  %(items)s::text[], %(outcome)s::text[], %(blocked_by)s::uuid[],
                  %(blocked_due)s::timestamptz[], %(effects)s::text[], %(event_kind)s::text[],
                  %(event_at)s::timestamptz[], %(event_due_at)s::timestamptz[],
                  %(event_lease)s::bigint[], %(event_worker)s::text[], %(event_data)s::text[])
        as i (id, expected, format, version, state, due_at, at, suspect, held, starts, attempts,
              interruptions, lease, worker, started_at, items, outcome, blocked_by, blocked_due,
              effects, event_kind, event_at, event_due_at, event_lease, event_worker, event_data)
), hit as (
    update "leasebook"."jobs" as j
       set format = greatest(i.format, j.format),
           version = i.version,
           state = i.state,
           due_at = i.due_at,
           at = i.at,
           suspect = i.suspect,
           held = i.held,
           starts = i.starts,
           attempts = i.attempts,
           interruptions = i.interruptions,
           lease = i.lease,
           worker = i.worker,
           started_at = i.started_at,
           items = coalesce(i.items::json[], j.items),
           outcome = i.outcome,
           blocked_by = i.blocked_by,
           blocked_due = i.blocked_due,
           effects = coalesce(i.effects::json, j.effects)
      from input as i
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
