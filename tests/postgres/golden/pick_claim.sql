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
)
select (select at from clock) as asked_at,
       plain.id, plain.queue, plain.priority, plain.name, plain.args, plain.enqueued_at,
       plain.retries, plain.timeout, plain.lease_seconds, plain.on_exhausted, plain.label,
       plain.owner, plain.subject, plain.expires_at, plain.group_key, plain.group_window,
       plain.group_max_hold, plain.group_max_size, plain.hold_until, plain.unique_key,
       plain.on_expired, plain.ordering_key, plain.on_hold, plain.after, plain.sequence,
       plain.version, plain.state, plain.due_at, plain.at, plain.held, plain.starts,
       plain.attempts, plain.interruptions, plain.lease, plain.worker, plain.started_at,
       plain.items, plain.outcome, plain.blocked_by, plain.blocked_due, plain.effects
  from (select picked.*
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
         limit %(limit)s) as plain
 union all
select null::timestamptz,
       doubted.id, doubted.queue, doubted.priority, doubted.name, doubted.args,
       doubted.enqueued_at, doubted.retries, doubted.timeout, doubted.lease_seconds,
       doubted.on_exhausted, doubted.label, doubted.owner, doubted.subject, doubted.expires_at,
       doubted.group_key, doubted.group_window, doubted.group_max_hold, doubted.group_max_size,
       doubted.hold_until, doubted.unique_key, doubted.on_expired, doubted.ordering_key,
       doubted.on_hold, doubted.after, doubted.sequence, doubted.version, doubted.state,
       doubted.due_at, doubted.at, doubted.held, doubted.starts, doubted.attempts,
       doubted.interruptions, doubted.lease, doubted.worker, doubted.started_at, doubted.items,
       doubted.outcome, doubted.blocked_by, doubted.blocked_due, doubted.effects
  from (select picked.*
          from driver
         cross join lateral (
           select j.*
             from "leasebook"."jobs" as j
            where j.queue = driver.queue and j.priority = driver.priority
              and state <> 'leased' and not held and suspect
              and j.due_at <= (select at from clock) and j.due_at >= '-infinity'::timestamptz
              and j.name = any (%(names)s::text[]) and j.format <= %(format)s
            order by j.due_at, j.seq
            limit 1
               ) as picked
         limit least(%(suspects)s, 1)) as doubted
