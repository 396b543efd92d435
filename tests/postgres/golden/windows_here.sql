select pg_catalog.pg_is_in_recovery() as standby,
       pg_catalog.pg_current_xact_id_if_assigned() is not null as wrote,
       pg_catalog.pg_current_snapshot()::text as snapshot,
       (select s.system_identifier::text from pg_catalog.pg_control_system() as s) as system,
       case when not pg_catalog.pg_is_in_recovery() then
            pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)
       end as timeline,
       (select c.position ->> 'system' from "leasebook"."checkpoints" as c
         where c.name = 'log home') as home
