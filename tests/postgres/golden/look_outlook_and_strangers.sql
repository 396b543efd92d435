select seen.*, met.names, met.formats
  from (select pg_catalog.clock_timestamp() as at,
       (select pg_catalog.min(least(plain.due_at, suspect.due_at))
          from unnest(%(queues)s::text[]) as q (queue)
         cross join generate_series(9, 0, -1) as p (priority)
          left join lateral (
               select j.due_at
                 from "leasebook"."jobs" as j
                where j.queue = q.queue and j.priority = p.priority::smallint
                  and state <> 'leased' and not held and not suspect
                  and j.due_at >= %(since)s::timestamptz
                  and j.name = any (%(names)s::text[]) and j.format <= %(format)s
                order by j.due_at, j.seq
                limit 1
               ) as plain on true
          left join lateral (
               select j.due_at
                 from "leasebook"."jobs" as j
                where j.queue = q.queue and j.priority = p.priority::smallint
                  and state <> 'leased' and not held and suspect
                  and j.due_at >= '-infinity'::timestamptz
                  and j.name = any (%(names)s::text[]) and j.format <= %(format)s
                order by j.due_at, j.seq
                limit 1
               ) as suspect on true
       ) as next_due,
       (select j.due_at
          from "leasebook"."jobs" as j
         where j.state = 'leased' and j.format <= %(format)s
         order by j.due_at limit 1) as next_lease_end,
       (select i.id
          from "leasebook"."group_inbox" as i
         where i.format <= %(format)s
         order by i.id limit 1) is not null as inbox
       ) as seen
 cross join (
       select pg_catalog.array_agg(stranger.name) as names,
              pg_catalog.array_agg(stranger.newer) as formats
         from (select distinct sampled.name collate "C",
       case when sampled.format > %(format)s then sampled.format end as newer
  from unnest(%(queues)s::text[]) as q (queue)
 cross join generate_series(9, 0, -1) as p (priority)
 cross join unnest(array['-infinity', %(since)s]::timestamptz[]) as f (since)
 cross join lateral (
       select j.name, j.format
         from "leasebook"."jobs" as j
        where j.queue = q.queue and j.priority = p.priority::smallint
          and state <> 'leased' and not held and not suspect
          and j.due_at <= pg_catalog.statement_timestamp() and j.due_at >= f.since
        order by j.due_at, j.seq
        limit %(limit)s
       ) as sampled
 where sampled.name <> all (%(names)s::text[]) or sampled.format > %(format)s
 order by 1, 2
 limit 100
              ) as stranger
       ) as met
