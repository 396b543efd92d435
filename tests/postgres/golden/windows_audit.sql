select a.id, a.xid, a.at, a.kind, a.detail, a.job_id, a.worker
  from "leasebook"."audit_log" as a
 where a.xid >= %(begin)s and a.xid < %(end)s
   and pg_catalog.pg_visible_in_snapshot(a.xid::text::xid8, %(upto)s::text::pg_snapshot)
   and not pg_catalog.pg_visible_in_snapshot(a.xid::text::xid8, %(after)s::text::pg_snapshot)
 union all
select a.id, a.xid, a.at, a.kind, a.detail, a.job_id, a.worker
  from "leasebook"."audit_log" as a
 where a.xid = any (%(open)s::bigint[])
   and pg_catalog.pg_visible_in_snapshot(a.xid::text::xid8, %(upto)s::text::pg_snapshot)
   and not pg_catalog.pg_visible_in_snapshot(a.xid::text::xid8, %(after)s::text::pg_snapshot)
 order by 1
