with held as materialized (
    select j.version, j.at, j.effects
      from "leasebook"."jobs" as j
     where j.id = %(id)s::text::uuid and j.lease = %(lease)s::bigint
       for share
)
select held.version, held.effects::text,
       (extract(epoch from held.at) * 1000000)::bigint as at,
       (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint as now
  from held
