select s.slot_name::text, s.active, pg_catalog.age(s.xmin),
       coalesce(pg_catalog.pg_wal_lsn_diff(
           case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()
                else pg_catalog.pg_current_wal_lsn() end, s.restart_lsn), 0)::bigint
  from pg_catalog.pg_replication_slots as s
 order by 1
