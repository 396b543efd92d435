delete from "leasebook"."jobs" where id = any (%(ids)s::uuid[])
