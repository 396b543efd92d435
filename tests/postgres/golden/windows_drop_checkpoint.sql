delete from "leasebook"."checkpoints" where name = %(name)s
