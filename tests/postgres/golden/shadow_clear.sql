with gone as (
    delete from "leasebook"."jobs_shadow" as j where j.id = any (%(ids)s::uuid[]) returning j.id
)
select pg_catalog.count(*) from gone
