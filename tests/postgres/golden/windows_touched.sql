select e.job_id
  from "leasebook"."job_events" as e
 where e.xid >= %(begin)s and e.xid < %(end)s
   and pg_catalog.pg_visible_in_snapshot(e.xid::text::xid8, %(upto)s::text::pg_snapshot)
   and not pg_catalog.pg_visible_in_snapshot(e.xid::text::xid8, %(after)s::text::pg_snapshot)
 union all
select e.job_id
  from "leasebook"."job_events" as e
 where e.xid = any (%(open)s::bigint[])
   and pg_catalog.pg_visible_in_snapshot(e.xid::text::xid8, %(upto)s::text::pg_snapshot)
   and not pg_catalog.pg_visible_in_snapshot(e.xid::text::xid8, %(after)s::text::pg_snapshot)
 order by 1
