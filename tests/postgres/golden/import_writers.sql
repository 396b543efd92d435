select distinct l.pid
  from pg_catalog.pg_locks as l
 where l.locktype = 'relation' and l.granted
   and l.database = (select d.oid from pg_catalog.pg_database as d
                      where d.datname = pg_catalog.current_database())
   and l.relation = %(table)s::regclass
   and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                  'AccessExclusiveLock')
   and l.pid <> pg_catalog.pg_backend_pid()
 order by 1
