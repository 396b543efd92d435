"""What the server knows about its own state, and about our tables: facts for the doctor."""

from __future__ import annotations

from ..schema.name import Schema

#: Events of the last hour, and lines of the audit log, are counted up to here.
SAMPLE_EVENTS = 100_000


def tables() -> str:
    """How large are the tables of schema %(schema)s, how dead, how stale, and are they vacuumed?

    What the rows need is about their columns' average widths and a header each; of a table that
    was never analyzed nobody knows, and it is taken to need what it has.
    """
    return """
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
"""


def sessions() -> str:
    """Which sessions hold a snapshot, sit idle in a transaction, or cannot write to their client?

    Those of other databases keep nothing from vacuum here, and neither does a vacuum itself.
    """
    return """
select case a.backend_type when 'walsender' then 'walsender' else 'session' end, a.pid,
       pg_catalog.concat_ws(', ', 'role ' || a.usename, nullif(a.application_name, ''),
                            pg_catalog.host(a.client_addr)),
       coalesce(a.state, 'active'),
       extract(epoch from pg_catalog.clock_timestamp()
                        - coalesce(a.xact_start, a.state_change, a.backend_start))::float8,
       a.state like 'idle in transaction%%', pg_catalog.age(a.backend_xmin),
       a.wait_event = 'ClientWrite' is true
  from pg_catalog.pg_stat_activity as a
 where a.pid <> pg_catalog.pg_backend_pid()
   and ((a.datname = pg_catalog.current_database() and a.backend_type = 'client backend')
        or a.backend_type = 'walsender')
   and (a.backend_xmin is not null or a.state like 'idle in transaction%%'
        or a.wait_event = 'ClientWrite')
   and not exists (select from pg_catalog.pg_stat_progress_vacuum as v where v.pid = a.pid)
 union all
select 'prepared', null, p.gid, 'prepared',
       extract(epoch from pg_catalog.clock_timestamp() - p.prepared)::float8, false,
       pg_catalog.age(p.transaction), false
  from pg_catalog.pg_prepared_xacts as p
 where p.database = pg_catalog.current_database()
 order by 5 desc
"""


def slots() -> str:
    """Which replication slots keep dead rows, or WAL?"""
    return """
select s.slot_name::text, s.active, pg_catalog.age(s.xmin),
       coalesce(pg_catalog.pg_wal_lsn_diff(
           case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()
                else pg_catalog.pg_current_wal_lsn() end, s.restart_lsn), 0)::bigint
  from pg_catalog.pg_replication_slots as s
 order by 1
"""


def server() -> str:
    """How is the server set, how old are its transaction ids, how full is its notify queue?"""
    return """
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
"""


def workers(schema: Schema) -> str:
    """Which workers beat no more without having been declared dead, and how many do beat?"""
    return f"""
select coalesce(pg_catalog.array_agg(w.id order by w.id) filter (where silent), '{{}}'),
       pg_catalog.count(*) filter (where not silent)
  from {schema.table("workers")} as w
 cross join lateral (
       select w.beat_at < pg_catalog.clock_timestamp() - interval '1 minute') as s (silent)
 where w.died_at is null
"""


def queue(schema: Schema) -> str:
    """How many jobs are held, how many due, and for how many seconds has the oldest been due?"""
    return f"""
select pg_catalog.count(*) filter (where j.held),
       pg_catalog.count(*) filter (where ready),
       extract(epoch from pg_catalog.clock_timestamp()
                        - pg_catalog.min(j.due_at) filter (where ready))::float8
  from {schema.table("jobs")} as j
 cross join lateral (
       select j.state <> 'leased' and not j.held
              and j.due_at <= pg_catalog.clock_timestamp()) as r (ready)
"""


def aborted(schema: Schema) -> str:
    """How many jobs were aborted within a day, among the newest lines of the audit log?"""
    return f"""
select pg_catalog.count(*)
  from (select a.kind, a.at from {schema.table("audit_log")} as a
         order by a.id desc limit {SAMPLE_EVENTS}) as newest
 where newest.kind = 'job_aborted'
   and newest.at > pg_catalog.clock_timestamp() - interval '1 day'
"""


def growth(schema: Schema) -> str:
    """How many events a day, by the jobs of the last hour, and how many bytes each?

    The ids of jobs are in order of time.  When the hour has more events than are counted, the time
    that those took stands for it.
    """
    return f"""
with sample as (
    select e.at
      from {schema.table("job_events")} as e
     where e.job_id >= (pg_catalog.lpad(pg_catalog.to_hex((extract(
               epoch from pg_catalog.now() - interval '1 hour') * 1000)::bigint), 12, '0')
               || '70008000000000000000')::uuid
       and e.job_id < (pg_catalog.lpad(pg_catalog.to_hex((extract(
               epoch from pg_catalog.now() + interval '1 hour') * 1000)::bigint), 12, '0')
               || '70008000000000000000')::uuid
     order by e.job_id desc
     limit {SAMPLE_EVENTS}
), counted as (
    select pg_catalog.count(*) as events, pg_catalog.min(sample.at) as since from sample
)
select c.events * 86400.0 / case
           when c.events < {SAMPLE_EVENTS} then 3600.0
           else greatest(1.0, extract(epoch from pg_catalog.clock_timestamp() - c.since))
       end,
       pg_catalog.pg_total_relation_size(t.oid) / greatest(t.reltuples, c.events, 1)
  from counted as c
 cross join pg_catalog.pg_class as t
  join pg_catalog.pg_namespace as n on n.oid = t.relnamespace
 where n.nspname = %(schema)s and t.relname = 'job_events'
"""
