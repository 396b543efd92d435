select distinct l.pid
  from pg_catalog.pg_locks as l
  left join pg_catalog.pg_stat_activity as a on a.pid = l.pid
 where l.locktype = 'relation' and l.granted and l.pid <> pg_catalog.pg_backend_pid()
   and l.database = (select d.oid from pg_catalog.pg_database as d
                      where d.datname = pg_catalog.current_database())
   and l.relation = pg_catalog.to_regclass(%(table)s)
   and coalesce(a.xact_start < pg_catalog.clock_timestamp() - interval '200 ms', true)
 order by 1
