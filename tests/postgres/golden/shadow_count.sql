select pg_catalog.count(*) from "leasebook"."jobs_shadow"
