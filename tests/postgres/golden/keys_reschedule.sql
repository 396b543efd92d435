with input as (
    select *
      from unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(ats)s::timestamptz[],
                  %(due_ats)s::timestamptz[])
        as i (id, version, at, due_at)
), hit as (
    update "leasebook"."jobs" as j
       set version = i.version + 1, at = i.at,
           due_at = case when j.blocked_by is null then i.due_at else j.due_at end,
           blocked_due = case when j.blocked_by is not null then i.due_at end
      from input as i
     where j.id = any (array[i.id]) and j.version = i.version
    returning j.id, j.version, j.at, i.due_at
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, due_at)
    select hit.id, hit.version, hit.at, %(kind)s, hit.due_at
      from hit order by hit.id
)
select pg_catalog.count(*) from hit
