with jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs"')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs_shadow"')
)
select 'drop index ' || i.indexrelid::pg_catalog.regclass
  from jobs, shadow, pg_catalog.pg_index as i
  join pg_catalog.pg_class as x on x.oid = i.indexrelid
 where i.indrelid = shadow.oid and x.relname not in (
       select 'shadow_' || own.indexrelid
         from pg_catalog.pg_index as own where own.indrelid = jobs.oid)
union all
select case when i.indisunique then 'create unique index ' else 'create index ' end
       || 'shadow_' || i.indexrelid || ' on "leasebook"."jobs_shadow"'
       || pg_catalog.substr(made.as, pg_catalog.strpos(made.as, ' USING '))
  from jobs, shadow, pg_catalog.pg_index as i
 cross join lateral pg_catalog.pg_get_indexdef(i.indexrelid) as made ("as")
 where i.indrelid = jobs.oid and i.indisvalid and 'shadow_' || i.indexrelid not in (
       select x.relname
         from pg_catalog.pg_index as its
         join pg_catalog.pg_class as x on x.oid = its.indexrelid
        where its.indrelid = shadow.oid)
