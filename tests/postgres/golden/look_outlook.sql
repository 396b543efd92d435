select pg_catalog.clock_timestamp() as at,
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
