update "leasebook"."jobs" as j
   set has_waiter = true, format = greatest(j.format, 2::smallint)
 where j.id = any (array(
       select own.blocked_by from "leasebook"."jobs" as own
        where own.id = any (%(ids)s::uuid[]) and own.blocked_by is not null))
   and not j.has_waiter
