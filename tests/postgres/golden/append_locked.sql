with got as materialized (
    select j.id from "leasebook"."jobs" as j
     where j.id = any (%(ids)s::uuid[])
     order by j.id
       for update skip locked
)
select j.id from "leasebook"."jobs" as j
 where j.id = any (%(ids)s::uuid[]) and j.id not in (select got.id from got)
