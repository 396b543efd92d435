select j.id from "leasebook"."jobs" as j
 where j.id = any (%(ids)s::uuid[])
 order by j.id
   for update
