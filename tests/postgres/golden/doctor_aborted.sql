select pg_catalog.count(*)
  from (select a.kind, a.at from "leasebook"."audit_log" as a
         order by a.id desc limit 100000) as newest
 where newest.kind = 'job_aborted'
   and newest.at > pg_catalog.clock_timestamp() - interval '1 day'
