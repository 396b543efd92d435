select asked.subject,
       coalesce((select true
                   from "leasebook"."jobs" as j
                  where j.subject = asked.subject and not j.held
                  limit 1), false)
    or coalesce((select true
                   from "leasebook"."group_inbox" as i
                  where i.subject = asked.subject
                  limit 1), false) as alive,
       coalesce((select true
                   from "leasebook"."jobs" as j
                  where j.subject = asked.subject and j.held
                  limit 1), false) as held
  from unnest(%(subjects)s::text[]) as asked (subject)
