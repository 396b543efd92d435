with ours as (
    select c.oid, c.relname, c.reloptions,
           (select sum((1 - s.null_frac) * s.avg_width)
              from pg_catalog.pg_stats as s
             where s.schemaname = n.nspname and s.tablename = c.relname) as width
      from pg_catalog.pg_class as c
      join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
     where n.nspname = %(schema)s and c.relkind = 'r'
)
select pg_catalog.quote_ident(%(schema)s) || '.' || pg_catalog.quote_ident(o.relname),
       s.n_live_tup, s.n_dead_tup, pg_catalog.pg_total_relation_size(o.oid),
       pg_catalog.pg_relation_size(o.oid),
       coalesce((s.n_live_tup * (28 + o.width) * 1.2)::bigint,
                pg_catalog.pg_relation_size(o.oid)),
       s.n_mod_since_analyze,
       extract(epoch from pg_catalog.now() - greatest(s.last_analyze, s.last_autoanalyze))::float8,
       not exists (select from pg_catalog.pg_options_to_table(o.reloptions) as p
                    where p.option_name = 'autovacuum_enabled' and not p.option_value::boolean)
  from ours as o
  join pg_catalog.pg_stat_all_tables as s on s.relid = o.oid
 order by o.relname
