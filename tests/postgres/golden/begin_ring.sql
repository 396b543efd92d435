begin isolation level read committed;
set local lock_timeout = 5000;
set local statement_timeout = 10000;
set local synchronous_commit = off;
