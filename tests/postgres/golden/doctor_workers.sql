select coalesce(pg_catalog.array_agg(w.id order by w.id) filter (where silent), '{}'),
       pg_catalog.count(*) filter (where not silent)
  from "leasebook"."workers" as w
 cross join lateral (
       select w.beat_at < pg_catalog.clock_timestamp() - interval '1 minute') as s (silent)
 where w.died_at is null
