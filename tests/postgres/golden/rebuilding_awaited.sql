select distinct other.blocked_by
  from "leasebook"."jobs" as other
 where other.blocked_by = any (%(ids)s::uuid[]) and other.blocked_by is not null
