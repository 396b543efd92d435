with found as materialized (
    select j.id from "leasebook"."jobs" as j
     where j.blocked_by = any (array[%(id)s::text::uuid]) and j.blocked_by is not null
     union
    select j.id from "leasebook"."jobs" as j
     where j.after = any (array[%(id)s::text::uuid]) and j.after is not null
       and (j.blocked_by = j.after or j.held)
), locked as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.id = any (array(select found.id from found))
       and (j.blocked_by is not null or j.held)
     order by j.id
       for update
)
select locked.id::text, locked.state, locked.version,
       (extract(epoch from locked.at) * 1000000)::bigint as at,
       (extract(epoch from coalesce(locked.blocked_due, locked.due_at)) * 1000000)::bigint
           as due_at,
       locked.held, locked.outcome, locked.blocked_by::text
  from locked
 order by locked.id
