select pg_catalog.set_config('enable_seqscan', 'on', true),
       pg_catalog.set_config('enable_bitmapscan', 'on', true)
