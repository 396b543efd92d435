with sample as (
    select e.at
      from "leasebook"."job_events" as e
     where e.job_id >= (pg_catalog.lpad(pg_catalog.to_hex((extract(
               epoch from pg_catalog.now() - interval '1 hour') * 1000)::bigint), 12, '0')
               || '70008000000000000000')::uuid
       and e.job_id < (pg_catalog.lpad(pg_catalog.to_hex((extract(
               epoch from pg_catalog.now() + interval '1 hour') * 1000)::bigint), 12, '0')
               || '70008000000000000000')::uuid
     order by e.job_id desc
     limit 100000
), counted as (
    select pg_catalog.count(*) as events, pg_catalog.min(sample.at) as since from sample
)
select c.events * 86400.0 / case
           when c.events < 100000 then 3600.0
           else greatest(1.0, extract(epoch from pg_catalog.clock_timestamp() - c.since))
       end,
       pg_catalog.pg_total_relation_size(t.oid) / greatest(t.reltuples, c.events, 1)
  from counted as c
 cross join pg_catalog.pg_class as t
  join pg_catalog.pg_namespace as n on n.oid = t.relnamespace
 where n.nspname = %(schema)s and t.relname = 'job_events'
