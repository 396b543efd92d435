select pg_catalog.count(*) filter (where j.held),
       pg_catalog.count(*) filter (where ready),
       extract(epoch from pg_catalog.clock_timestamp()
                        - pg_catalog.min(j.due_at) filter (where ready))::float8
  from "leasebook"."jobs" as j
 cross join lateral (
       select j.state <> 'leased' and not j.held
              and j.due_at <= pg_catalog.clock_timestamp()) as r (ready)
