select pg_catalog.count(*)
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select j.id from "leasebook"."jobs" as j where j.id = any (array[i.id]) for update
       ) as locked
