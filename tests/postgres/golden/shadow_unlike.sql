with jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs"')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs_shadow"')
)
select exists (
        select a.attname, a.atttypid, a.atttypmod, a.attnotnull,
               pg_catalog.pg_get_expr(f.adbin, f.adrelid)
          from pg_catalog.pg_attribute as a
          left join pg_catalog.pg_attrdef as f on f.adrelid = a.attrelid and f.adnum = a.attnum
         where a.attnum > 0 and not a.attisdropped and a.attrelid = jobs.oid
        except 
        select a.attname, a.atttypid, a.atttypmod, a.attnotnull,
               pg_catalog.pg_get_expr(f.adbin, f.adrelid)
          from pg_catalog.pg_attribute as a
          left join pg_catalog.pg_attrdef as f on f.adrelid = a.attrelid and f.adnum = a.attnum
         where a.attnum > 0 and not a.attisdropped and a.attrelid = shadow.oid)
    or exists (
        select a.attname, a.atttypid, a.atttypmod, a.attnotnull,
               pg_catalog.pg_get_expr(f.adbin, f.adrelid)
          from pg_catalog.pg_attribute as a
          left join pg_catalog.pg_attrdef as f on f.adrelid = a.attrelid and f.adnum = a.attnum
         where a.attnum > 0 and not a.attisdropped and a.attrelid = shadow.oid
        except 
        select a.attname, a.atttypid, a.atttypmod, a.attnotnull,
               pg_catalog.pg_get_expr(f.adbin, f.adrelid)
          from pg_catalog.pg_attribute as a
          left join pg_catalog.pg_attrdef as f on f.adrelid = a.attrelid and f.adnum = a.attnum
         where a.attnum > 0 and not a.attisdropped and a.attrelid = jobs.oid)
  from jobs, shadow
