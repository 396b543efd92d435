with enrolled as (
    insert into "leasebook"."workers" (id, name, host, pid, capacity, queues, code_version)
    values (%(id)s, %(name)s, %(host)s, %(pid)s, %(capacity)s, %(queues)s::text[],
            %(code_version)s)
    returning id
)
insert into "leasebook"."audit_log" (kind, worker, detail)
select 'worker_started', enrolled.id, %(detail)s::json from enrolled
