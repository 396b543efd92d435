select pg_catalog.pg_notify(%(channel)s, '')
