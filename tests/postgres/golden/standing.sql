select pg_catalog.set_config(s.name, s.value, false)
  from (values
           ('default_transaction_isolation', 'read committed'),
           ('idle_in_transaction_session_timeout', '5000'),
           ('lock_timeout', '5000'),
           ('statement_timeout', '10000'),
           ('timezone', 'UTC'),
           ('datestyle', 'ISO'),
           ('enable_seqscan', 'off'),
           ('enable_bitmapscan', 'off'),
           ('enable_hashjoin', 'off'),
           ('enable_mergejoin', 'off'),
           ('jit', 'off'),
           ('plan_cache_mode', 'force_generic_plan')
       ) as s (name, value)
 where pg_catalog.pg_backend_pid() = %(pid)s
