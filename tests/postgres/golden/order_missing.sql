select i.id::text
  from unnest(%(ids)s::text::uuid[]) as i (id)
 where (select e.version from "leasebook"."job_events" as e
         where e.job_id = i.id and e.version = 1) is null
   and (select s.status from "leasebook"."job_summaries" as s where s.job_id = i.id) is null
