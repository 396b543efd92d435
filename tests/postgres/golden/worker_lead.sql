select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
           pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'duty', %(duty)s::text), 0))
