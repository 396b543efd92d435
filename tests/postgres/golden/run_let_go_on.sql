with input as (
    select *
      from unnest(%(ids)s::text::uuid[], %(versions)s::text::bigint[], %(states)s::text::text[],
                  %(ats)s::text::timestamptz[], %(due_ats)s::text::timestamptz[])
        as i (id, version, state, at, due_at)
), moved as (
    update "leasebook"."jobs" as j
       set version = i.version, state = i.state, at = i.at, due_at = i.due_at,
           held = false, outcome = null, blocked_by = null, blocked_due = null
      from input as i
     where j.id = any (array[i.id])
    returning j.id, j.version, j.at, j.due_at
)
insert into "leasebook"."job_events" (job_id, version, at, kind, due_at)
select moved.id, moved.version, moved.at, %(kind)s, moved.due_at
  from moved order by moved.id
