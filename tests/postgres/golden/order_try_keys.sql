select k.key
  from unnest(%(keys)s::text[]) as k (key)
 where pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'order', k.key), 0))
