select a.id, a.at, a.kind, a.detail, a.job_id, a.worker
  from "leasebook"."audit_log" as a
 where a.id > %(after)s and a.at <= %(until)s::timestamptz and a.kind = any (%(kinds)s::text[])
 order by a.id
 limit %(limit)s
