with kept as (
    update "leasebook"."jobs" as j
       set version = %(version)s::bigint, at = %(at)s::text::timestamptz,
           effects = %(effects)s::text::json,
           format = greatest(j.format, %(format)s::smallint)
     where j.id = %(id)s::text::uuid and j.lease = %(lease)s::bigint
)
insert into "leasebook"."job_events" (job_id, version, at, kind, lease, data)
values (%(id)s::text::uuid, %(version)s::bigint, %(at)s::text::timestamptz,
            %(kind)s::text, %(lease)s::bigint, %(data)s::text::json)
