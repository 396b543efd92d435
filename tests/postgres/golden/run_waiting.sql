with found as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.id = any (array(
               select b.id from "leasebook"."jobs" as b
                where b.blocked_by = %(id)s::text::uuid and b.blocked_by is not null
                union
               select a.id from "leasebook"."jobs" as a
                where a.after = %(id)s::text::uuid and a.after is not null
                  and (a.blocked_by = a.after or a.held)))
       and (j.blocked_by is not null or j.held)
     order by j.id
       for update
)
select found.id::text, found.state, found.version,
       (extract(epoch from found.at) * 1000000)::bigint as at,
       (extract(epoch from coalesce(found.blocked_due, found.due_at)) * 1000000)::bigint as due_at,
       found.held, found.outcome, found.blocked_by::text
  from found
 order by found.id
