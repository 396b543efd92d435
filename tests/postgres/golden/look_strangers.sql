select distinct sampled.name collate "C",
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
