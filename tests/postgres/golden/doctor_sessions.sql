select case a.backend_type when 'walsender' then 'walsender' else 'session' end, a.pid,
       pg_catalog.concat_ws(', ', 'role ' || a.usename, nullif(a.application_name, ''),
                            pg_catalog.host(a.client_addr)),
       coalesce(a.state, 'active'),
       extract(epoch from pg_catalog.clock_timestamp()
                        - coalesce(a.xact_start, a.state_change, a.backend_start))::float8,
       a.state like 'idle in transaction%%', pg_catalog.age(a.backend_xmin),
       a.wait_event = 'ClientWrite' is true
  from pg_catalog.pg_stat_activity as a
 where a.pid <> pg_catalog.pg_backend_pid()
   and ((a.datname = pg_catalog.current_database() and a.backend_type = 'client backend')
        or a.backend_type = 'walsender')
   and (a.backend_xmin is not null or a.state like 'idle in transaction%%'
        or a.wait_event = 'ClientWrite')
   and not exists (select from pg_catalog.pg_stat_progress_vacuum as v where v.pid = a.pid)
 union all
select 'prepared', null, p.gid, 'prepared',
       extract(epoch from pg_catalog.clock_timestamp() - p.prepared)::float8, false,
       pg_catalog.age(p.transaction), false
  from pg_catalog.pg_prepared_xacts as p
 where p.database = pg_catalog.current_database()
 order by 5 desc
