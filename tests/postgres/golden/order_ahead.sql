select own.id,
       (select parent.id from "leasebook"."jobs" as parent
         where parent.id = own.after and not parent.held) as parent,
       (select e.kind from "leasebook"."job_events" as e
         where e.job_id = own.after order by e.version desc limit 1) as parent_kind,
       (select s.status from "leasebook"."job_summaries" as s
         where s.job_id = own.after) as parent_end,
       (select j.id from "leasebook"."jobs" as j
         where j.ordering_key = own.ordering_key and j.seq < own.seq and j.ordering_key is not null and (not j.held or j.on_hold is null)
         order by j.seq desc limit 1) as prior,
       exists (select from "leasebook"."group_inbox" as i
                where i.ordering_key = own.ordering_key and i.sequence < own.seq) as item,
       exists (select from "leasebook"."jobs" as j
                where j.ordering_key = own.ordering_key and j.ordering_key is not null
                  and j.state = 'leased' and j.id <> own.id) as running,
       own.seq, pg_catalog.clock_timestamp() as asked_at
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select j.* from "leasebook"."jobs" as j where j.id = i.id offset 0
       ) as own
