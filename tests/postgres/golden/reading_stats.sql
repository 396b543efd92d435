with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), standing as (
    select j.queue,
           pg_catalog.count(*) filter (where waiting and j.due_at <= clock.at) as due,
           pg_catalog.count(*) filter (where j.state = 'leased') as running,
           pg_catalog.count(*) filter (where later and j.state = 'retry-wait') as retrying,
           pg_catalog.count(*) filter (where later and j.state = 'grouped') as grouped,
           pg_catalog.count(*) filter (where waiting and j.blocked_by is not null) as blocked,
           pg_catalog.count(*) filter (where later and j.state = 'queued') as delayed,
           pg_catalog.count(*) filter (where j.held) as held,
           pg_catalog.min(j.due_at) filter (where waiting and j.due_at <= clock.at) as oldest_due
      from "leasebook"."jobs" as j
     cross join clock
     cross join lateral (select j.state <> 'leased' and not j.held) as w (waiting)
     cross join lateral (
           select waiting and j.blocked_by is null and j.due_at > clock.at) as l (later)
     group by j.queue
), arriving as (
    select i.queue, pg_catalog.count(*) as items
      from "leasebook"."group_inbox" as i
     group by i.queue
)
select coalesce(s.queue, a.queue), coalesce(s.due, 0), coalesce(s.running, 0),
       coalesce(s.retrying, 0), coalesce(s.grouped, 0), coalesce(s.blocked, 0),
       coalesce(s.delayed, 0), coalesce(s.held, 0), coalesce(a.items, 0), s.oldest_due
  from standing as s
  full join arriving as a using (queue)
 order by 1
