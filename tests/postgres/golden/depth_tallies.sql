with clock as materialized (
    select pg_catalog.clock_timestamp() as at
)
select j.state, j.held, j.due_at <= clock.at as reached, pg_catalog.count(*)
  from "leasebook"."jobs" as j
 cross join clock
 group by 1, 2, 3
