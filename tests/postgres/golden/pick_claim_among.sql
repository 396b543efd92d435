with own as materialized (
    select w.died_at from "leasebook"."workers" as w where w.id = %(worker)s for key share
), clock as materialized (
    select pg_catalog.clock_timestamp() as at
     where %(worker)s::text is null or (select own.died_at is null from own)
), driver as materialized (
    select q.queue, p.priority::smallint as priority,
           pg_catalog.row_number() over (order by p.priority desc, q.turn) as place
      from unnest(%(queues)s::text[]) with ordinality as q (queue, turn)
     cross join generate_series(9, 0, -1) as p (priority)
     order by place
), plain as materialized (
    select driver.place, picked.*
      from driver
     cross join lateral (
           select j.*
             from "leasebook"."jobs" as j
            where j.queue = driver.queue and j.priority = driver.priority
              and state <> 'leased' and not held and not suspect
              and j.due_at <= (select at from clock) and j.due_at >= %(since)s::timestamptz
              and j.name = any (%(names)s::text[]) and j.format <= %(format)s
            order by j.due_at, j.seq
            limit %(limit)s
              for update skip locked
           ) as picked
     limit %(limit)s
), last as materialized (
    select plain.place, plain.due_at, plain.seq
      from plain
     order by plain.place, plain.due_at, plain.seq
     limit 1 offset %(limit)s - 1
), doubted as materialized (
    select driver.place, picked.id, picked.version, picked.due_at, picked.seq
      from driver
     cross join lateral (
           select j.*
             from "leasebook"."jobs" as j
            where j.queue = driver.queue and j.priority = driver.priority
              and state <> 'leased' and not held and suspect
              and j.due_at <= (select at from clock) and j.due_at >= '-infinity'::timestamptz
              and j.name = any (%(names)s::text[]) and j.format <= %(format)s
            order by j.due_at, j.seq
            limit %(suspects)s
           ) as picked
     limit %(suspects)s
), suspect as materialized (
    select doubted.place, picked.*
      from doubted
     cross join lateral (
           select j.*
             from "leasebook"."jobs" as j
            where j.id = doubted.id and j.version = doubted.version
            for update skip locked
           ) as picked
     where not exists (
           select from last
            where (last.place, last.due_at, last.seq)
                < (doubted.place, doubted.due_at, doubted.seq))
)
select (select at from clock) as asked_at,
       chosen.id, chosen.queue, chosen.priority, chosen.name, chosen.args, chosen.enqueued_at,
       chosen.retries, chosen.timeout, chosen.lease_seconds, chosen.on_exhausted, chosen.label,
       chosen.owner, chosen.subject, chosen.expires_at, chosen.group_key, chosen.group_window,
       chosen.group_max_hold, chosen.group_max_size, chosen.hold_until, chosen.unique_key,
       chosen.on_expired, chosen.ordering_key, chosen.on_hold, chosen.after, chosen.sequence,
       chosen.version, chosen.state, chosen.due_at, chosen.at, chosen.held, chosen.starts,
       chosen.attempts, chosen.interruptions, chosen.lease, chosen.worker, chosen.started_at,
       chosen.items, chosen.outcome, chosen.blocked_by, chosen.blocked_due, chosen.effects
  from (select * from plain union all select * from suspect) as chosen
 order by chosen.place, chosen.due_at, chosen.seq
 limit %(limit)s
