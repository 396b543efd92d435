select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(
           pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'import', %(source)s::text), 0))
