select a.id, a.at, a.kind, a.detail, a.job_id, a.worker
  from "leasebook"."audit_log" as a
 where a.id > %(after)s and a.at <= %(until)s::timestamptz and a.kind = any (%(kinds)s::text[])
   and (%(upto)s::text is null or pg_catalog.pg_visible_in_snapshot(a.xid::text::xid8, %(upto)s::text::pg_snapshot))
 order by a.id
 limit %(limit)s
