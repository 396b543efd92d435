select e.kind, pg_catalog.count(*) from "leasebook"."job_events" as e group by e.kind
 union all
select a.kind, pg_catalog.count(*) from "leasebook"."audit_log" as a group by a.kind
