with living as materialized (
    select w.id from "leasebook"."workers" as w
     where w.id = %(worker)s and w.died_at is null for update
), buried as (
    update "leasebook"."workers" as w
       set died_at = pg_catalog.clock_timestamp()
      from living
     where w.id = any (array[living.id])
    returning w.id
)
select pg_catalog.count(*) > 0 as buried, pg_catalog.clock_timestamp() as at from buried
