with stuck as materialized (
    select a.pid
      from pg_catalog.pg_stat_activity as a
     where a.datname = pg_catalog.current_database() and a.usename = current_user
       and a.application_name = %(listener)s and a.wait_event = 'ClientWrite'
       and a.xact_start < pg_catalog.clock_timestamp() - %(seconds)s * interval '1 second'
)
select pg_catalog.count(pg_catalog.pg_terminate_backend(stuck.pid)) as ended from stuck
