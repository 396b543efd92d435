select pg_catalog.count(*), pg_catalog.clock_timestamp()
  from "public"."old_queue" as t
 where (state = 'done'
) is true
