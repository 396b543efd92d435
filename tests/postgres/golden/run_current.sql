select j.lease from "leasebook"."jobs" as j where j.id = %(id)s::text::uuid
