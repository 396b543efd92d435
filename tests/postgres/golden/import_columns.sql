select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.array_position(i.indkey::smallint[], a.attnum) as place_in_key
  from pg_catalog.pg_attribute as a
  join pg_catalog.pg_class as c on c.oid = a.attrelid
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  left join pg_catalog.pg_index as i on i.indrelid = c.oid and i.indisprimary
 where n.nspname = %(schema)s and c.relname = %(table)s and a.attnum > 0 and not a.attisdropped
 order by a.attnum
