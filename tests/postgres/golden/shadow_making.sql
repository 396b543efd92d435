with jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs"')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs_shadow"')
)
select s.statement
  from jobs cross join lateral (values
    (1, 'create table "leasebook"."jobs_shadow" (like "leasebook"."jobs" including all excluding indexes)'),
    (2, 'alter table "leasebook"."jobs_shadow" owner to '
        || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(jobs.relowner))),
    (3, 'alter table "leasebook"."jobs_shadow" set (' || (
        select pg_catalog.string_agg(
               pg_catalog.quote_ident(o.option_name) || '='
               || pg_catalog.quote_literal(o.option_value), ', ')
          from pg_catalog.pg_options_to_table(jobs.reloptions) as o) || ')'),
    (4, 'comment on table "leasebook"."jobs_shadow" is '
        || pg_catalog.quote_literal(pg_catalog.obj_description(jobs.oid, 'pg_class'))),
    (5, (select 'alter table "leasebook"."jobs_shadow" add constraint shadow_' || k.conindid || ' '
                || pg_catalog.pg_get_constraintdef(k.oid)
           from pg_catalog.pg_constraint as k
          where k.conrelid = jobs.oid and k.contype = 'p'))
  ) as s (place, statement)
 where s.statement is not null
 order by s.place
