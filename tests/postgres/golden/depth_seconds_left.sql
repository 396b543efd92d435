select %(seconds)s - extract(epoch from pg_catalog.clock_timestamp() - c.at)::float8
  from "leasebook"."checkpoints" as c
 where c.name = %(name)s
