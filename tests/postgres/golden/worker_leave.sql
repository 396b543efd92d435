with gone as (
    delete from "leasebook"."workers" where id = %(worker)s
)
insert into "leasebook"."audit_log" (kind, worker, detail)
values ('worker_stopped', %(worker)s, '{}')
