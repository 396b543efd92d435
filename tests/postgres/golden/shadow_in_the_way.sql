with jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs"')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs_shadow"')
)
select pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)
  from jobs
  join pg_catalog.pg_depend as d
    on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = jobs.oid
    or d.refclassid = 'pg_catalog.pg_type'::regclass and d.refobjid in (
       select t.oid from pg_catalog.pg_type as t
        where jobs.reltype in (t.oid, t.typelem))
 where d.deptype in ('n', 'a')
   and not (d.classid = 'pg_catalog.pg_class'::regclass and d.objid in (
            select i.indexrelid from pg_catalog.pg_index as i where i.indrelid = jobs.oid))
   and d.classid <> 'pg_catalog.pg_attrdef'::regclass
   and not (d.classid = 'pg_catalog.pg_constraint'::regclass and d.objid in (
            select k.oid from pg_catalog.pg_constraint as k
             where k.conrelid = jobs.oid and k.contype in ('p', 'c', 'n')))
union
select 'column ' || a.attname
  from jobs
  join pg_catalog.pg_attribute as a on a.attrelid = jobs.oid
 where a.attnum > 0 and not a.attisdropped and a.attname <> all (%(columns)s::text[])
union
select 'row security' from jobs where jobs.relrowsecurity
union
select 'replica identity' from jobs where jobs.relreplident <> 'd'
union
select 'a table of the name jobs_shadow' from shadow
 where not exists (select from "leasebook"."checkpoints" as c where c.name = %(name)s)
order by 1
