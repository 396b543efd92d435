select e.job_id, e.version, e.event_id, e.xid, e.kind, e.at, e.due_at, e.lease, e.worker, e.data
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select e.* from "leasebook"."job_events" as e where e.job_id = i.id offset 0
       ) as e
 order by e.job_id, e.version
