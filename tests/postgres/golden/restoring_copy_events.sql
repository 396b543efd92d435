copy "leasebook"."job_events" (job_id, version, event_id, xid, kind, at, due_at, lease, worker, data) from stdin
