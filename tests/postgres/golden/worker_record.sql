insert into "leasebook"."audit_log" (kind, job_id, worker, detail)
select e.kind, e.job_id, e.worker, e.detail::json
  from unnest(%(kinds)s::text[], %(job_ids)s::uuid[], %(workers)s::text[], %(details)s::text[])
       with ordinality as e (kind, job_id, worker, detail, place)
 order by e.place
