with own as materialized (
    select w.died_at from "leasebook"."workers" as w where w.id = %(worker)s for key share
)
select pg_catalog.bool_and(own.died_at is null) as alive, pg_catalog.clock_timestamp() as at
  from own
