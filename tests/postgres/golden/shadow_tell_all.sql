update "leasebook"."jobs_shadow" as j
   set has_waiter = true, format = greatest(j.format, 2::smallint)
 where j.id = any (array(
       select distinct other.blocked_by from "leasebook"."jobs_shadow" as other
        where other.blocked_by is not null))
   and not j.has_waiter
