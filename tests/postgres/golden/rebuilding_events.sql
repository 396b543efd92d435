select e.job_id, e.version, e.event_id, e.xid, e.kind, e.at, e.due_at, e.lease, e.worker, e.data
  from "leasebook"."job_events" as e
 where e.job_id > %(after)s::uuid and e.job_id <= %(last)s::uuid
 order by e.job_id, e.version
