update "leasebook"."request_keys" as r
   set job_id = i.id
  from unnest(%(keys)s::text[], %(ids)s::uuid[]) as i (key, id)
 where r.key = any (array[i.key])
