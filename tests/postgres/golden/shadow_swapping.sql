with jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs"')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('"leasebook"."jobs_shadow"')
), steps (place, statement) as (
    select 1, 'revoke all on "leasebook"."jobs_shadow" from '
        || case when g.grantee = 0 then 'public'
                else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end
      from jobs, shadow, pg_catalog.aclexplode(
           coalesce(shadow.relacl, pg_catalog.acldefault('r', shadow.relowner))) as g
     where jobs.relacl is not null or shadow.relacl is not null
    union
    select 2, 'grant ' || g.privilege_type || ' on "leasebook"."jobs_shadow"' || pg_catalog.concat(' to ',
        case when g.grantee = 0 then 'public'
             else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end,
        case when g.is_grantable then ' with grant option' end)
      from jobs, shadow, pg_catalog.aclexplode(
           coalesce(jobs.relacl, pg_catalog.acldefault('r', jobs.relowner))) as g
     where jobs.relacl is not null or shadow.relacl is not null
    union
    select 3, 'grant ' || g.privilege_type || ' (' || pg_catalog.quote_ident(a.attname)
        || ') on "leasebook"."jobs_shadow"' || pg_catalog.concat(' to ',
        case when g.grantee = 0 then 'public'
             else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end,
        case when g.is_grantable then ' with grant option' end)
      from jobs
      join pg_catalog.pg_attribute as a on a.attrelid = jobs.oid
     cross join lateral pg_catalog.aclexplode(a.attacl) as g
    union
    select 4, 'drop table "leasebook"."jobs"'
    union
    select 5, 'alter table "leasebook"."jobs_shadow" rename to jobs'
    union
    select 6, 'alter index "leasebook"."shadow_' || i.indexrelid || '" rename to '
        || pg_catalog.quote_ident(x.relname)
      from jobs
      join pg_catalog.pg_index as i on i.indrelid = jobs.oid and i.indisvalid
      join pg_catalog.pg_class as x on x.oid = i.indexrelid
)
select steps.statement from steps order by steps.place, steps.statement
