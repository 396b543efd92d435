select (select e.job_id
          from "leasebook"."job_events" as e
         where e.job_id > %(after)s::uuid
         order by e.job_id, e.version
        offset %(limit)s limit 1) as last
