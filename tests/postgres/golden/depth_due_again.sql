insert into "leasebook"."checkpoints" as c (name, at)
values (%(name)s, pg_catalog.clock_timestamp())
on conflict (name) do update
   set at = excluded.at
 where excluded.at - c.at >= %(seconds)s * interval '1 second' or c.at > excluded.at
returning true
