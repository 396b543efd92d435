select c.position from "leasebook"."checkpoints" as c where c.name = %(name)s
