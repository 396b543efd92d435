with clock as materialized (
    select pg_catalog.clock_timestamp() as at
)
select j.state, j.held, j.due_at <= clock.at as reached, pg_catalog.count(*),
       j.blocked_by is not null as stopped
  from "leasebook"."jobs" as j
 cross join clock
 group by 1, 2, 3, 5
union all
select null, null, null, pg_catalog.count(*), null
  from "leasebook"."group_inbox"
