with input as (
    select *
      from unnest(%(id)s::uuid[], %(queue)s::text[], %(priority)s::smallint[], %(name)s::text[],
                  %(args)s::text[], %(enqueued_at)s::timestamptz[], %(retries)s::bigint[],
                  %(timeout)s::float8[], %(lease_seconds)s::float8[], %(on_exhausted)s::text[],
                  %(label)s::text[], %(owner)s::text[], %(subject)s::text[],
                  %(expires_at)s::timestamptz[], %(group_key)s::text[],
                  %(group_window)s::float8[], %(group_max_hold)s::float8[],
                  %(group_max_size)s::bigint[], %(hold_until)s::timestamptz[],
                  %(unique_key)s::text[], %(on_expired)s::text[], %(ordering_key)s::text[],
                  %(on_hold)s::text[], %(after)s::uuid[], %(sequence)s::bigint[],
                  %(format)s::smallint[], %(version)s::bigint[], %(state)s::text[],
                  %(due_at)s::timestamptz[], %(at)s::timestamptz[], %(suspect)s::boolean[],
                  %(held)s::boolean[], %(starts)s::bigint[], %(attempts)s::bigint[],
                  %(interruptions)s::bigint[], %(lease)s::bigint[], %(worker)s::text[],
                  %(started_at)s::timestamptz[], %(items)s::text[], %(outcome)s::text[],
                  %(blocked_by)s::uuid[], %(blocked_due)s::timestamptz[], %(effects)s::text[],
                  %(has_row)s::boolean[], %(event_kind)s::text[], %(event_at)s::timestamptz[],
                  %(event_due_at)s::timestamptz[], %(event_lease)s::bigint[],
                  %(event_worker)s::text[], %(event_data)s::text[])
        as i (id, queue, priority, name, args, enqueued_at, retries, timeout, lease_seconds,
              on_exhausted, label, owner, subject, expires_at, group_key, group_window,
              group_max_hold, group_max_size, hold_until, unique_key, on_expired, ordering_key,
              on_hold, after, sequence, format, version, state, due_at, at, suspect, held,
              starts, attempts, interruptions, lease, worker, started_at, items, outcome,
              blocked_by, blocked_due, effects, has_row, event_kind, event_at, event_due_at,
              event_lease, event_worker, event_data)
), hit as materialized (
    select pg_catalog.row_number() over (order by i.id) as place, i.*, false as has_waiter
      from input as i
     where (select e.version from "leasebook"."job_events" as e
             where e.job_id = i.id and e.version = 1) is null
), logged as (
    insert into "leasebook"."job_events" (job_id, version, kind, at, due_at, lease, worker, data)
    select hit.id, 1,
           hit.event_kind, hit.event_at, hit.event_due_at, hit.event_lease, hit.event_worker,
           hit.event_data::json
      from hit order by hit.id
    returning job_id, event_id
), numbers as (
    select pg_catalog.array_agg(logged.event_id order by logged.job_id) as event_ids from logged
), born as (
    insert into "leasebook"."jobs" (
           seq, id, queue, priority, name, args, enqueued_at, retries, timeout, lease_seconds,
           on_exhausted, label, owner, subject, expires_at, group_key, group_window,
           group_max_hold, group_max_size, hold_until, unique_key, on_expired, ordering_key,
           on_hold, after, sequence, format, version, state, due_at, at, suspect, held, starts,
           attempts, interruptions, lease, worker, started_at, items, outcome, blocked_by,
           blocked_due, effects)
    select coalesce(hit.sequence, (select event_ids from numbers)[hit.place]),
           hit.id, hit.queue, hit.priority, hit.name, hit.args::json, hit.enqueued_at,
           hit.retries, hit.timeout, hit.lease_seconds, hit.on_exhausted, hit.label, hit.owner,
           hit.subject, hit.expires_at, hit.group_key, hit.group_window, hit.group_max_hold,
           hit.group_max_size, hit.hold_until, hit.unique_key, hit.on_expired, hit.ordering_key,
           hit.on_hold, hit.after, hit.sequence, hit.format, hit.version, hit.state, hit.due_at,
           hit.at, hit.suspect, hit.held, hit.starts, hit.attempts, hit.interruptions,
           hit.lease, hit.worker, hit.started_at, hit.items::json[], hit.outcome,
           hit.blocked_by, hit.blocked_due, hit.effects::json
      from hit
     where hit.has_row
     order by hit.id
)
select pg_catalog.clock_timestamp() as at,
       pg_catalog.count(*) as hits,
       case when pg_catalog.count(*) < %(size)s then pg_catalog.array_agg(hit.id) end as ids,
       pg_catalog.array_agg(hit.id) filter (where hit.has_waiter) as waited_for
  from hit
