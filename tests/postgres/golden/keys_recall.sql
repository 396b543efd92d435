select r.key, r.job_id::text, r.digest
  from "leasebook"."request_keys" as r
 where r.key = any (%(keys)s::text[])
