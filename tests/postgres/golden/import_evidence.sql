insert into "leasebook"."audit_log" (kind, request_id, detail)
select e.kind, e.request_id, e.detail::json
  from unnest(%(kinds)s::text[], %(request_ids)s::text[], %(details)s::text[])
       with ordinality as e (kind, request_id, detail, place)
 order by e.place
on conflict (request_id) do nothing
