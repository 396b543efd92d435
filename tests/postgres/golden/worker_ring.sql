select pg_catalog.pg_notify(%(channel)s, ''),
       pg_catalog.set_config('synchronous_commit', 'off', true)
