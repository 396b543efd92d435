
select pg_catalog.has_schema_privilege(n.oid, 'usage')
    and pg_catalog.has_table_privilege(c.oid, 'select')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(table)s and c.relkind = 'r'
