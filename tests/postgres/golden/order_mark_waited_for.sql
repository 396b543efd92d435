with locked as materialized (
    select j.id
      from "leasebook"."jobs" as j
     where j.id = any (%(ids)s::uuid[])
       and (j.id = any (%(priors)s::uuid[]) and j.ordering_key is not null and (not j.held or j.on_hold is null)
            or j.id = any (%(parents)s::uuid[]) and not j.held)
     order by j.id
       for update skip locked
), marked as (
    update "leasebook"."jobs" as j
       set has_waiter = true, format = greatest(j.format, 2::smallint)
      from locked
     where j.id = any (array[locked.id])
)
select locked.id from locked
