begin isolation level read committed;
set local idle_in_transaction_session_timeout = '5000';
set local lock_timeout = '5000';
set local statement_timeout = '10000';
set local timezone = 'UTC';
set local datestyle = 'ISO';
set local enable_seqscan = 'off';
set local enable_bitmapscan = 'off';
set local enable_hashjoin = 'off';
set local enable_mergejoin = 'off';
set local jit = 'off';
set local plan_cache_mode = 'force_generic_plan';
select pg_catalog.clock_timestamp()
