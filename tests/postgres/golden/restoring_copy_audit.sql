copy "leasebook"."audit_log" (at, kind, job_id, worker, detail) from stdin
