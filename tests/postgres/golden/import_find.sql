select n.nspname::text, c.relname::text, c.relkind::text,
       pg_catalog.has_table_privilege(c.oid, 'select')
   and (pg_catalog.has_table_privilege(c.oid, 'update')
        or pg_catalog.has_table_privilege(c.oid, 'delete')) as usable
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where c.oid = coalesce(pg_catalog.to_regclass(%(name)s),
                        pg_catalog.to_regclass(pg_catalog.quote_ident(%(name)s)))
