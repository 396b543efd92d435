select case when pg_catalog.pg_table_is_visible(c.oid) then c.relname::text
            else n.nspname || '.' || c.relname end
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema')
 order by 1
 limit 1000
