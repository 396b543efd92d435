with gone as (
    delete from "leasebook"."jobs" as j
     where j.id = %(id)s::text::uuid and j.lease = %(lease)s::bigint
    returning j.has_waiter
), logged as (
    insert into "leasebook"."job_events" (job_id, version, at, kind, lease, data)
    values (%(id)s::text::uuid, %(version)s::bigint, %(at)s::text::timestamptz,
            %(kind)s::text, %(lease)s::bigint, %(data)s::text::json)
)
select gone.has_waiter from gone
