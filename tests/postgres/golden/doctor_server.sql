select pg_catalog.current_setting('autovacuum')::boolean,
       pg_catalog.current_setting('track_counts')::boolean,
       (select s.setting::float8 from pg_catalog.pg_settings as s
         where s.name = 'autovacuum_naptime'),
       pg_catalog.age(d.datfrozenxid), pg_catalog.mxid_age(d.datminmxid),
       pg_catalog.pg_notification_queue_usage(),
       (select pg_catalog.count(*) from pg_catalog.pg_stat_activity as a
         where a.datname = d.datname and a.query = '<insufficient privilege>'),
       pg_catalog.pg_is_in_recovery()
  from pg_catalog.pg_database as d
 where d.datname = pg_catalog.current_database()
