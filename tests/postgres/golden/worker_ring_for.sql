select asked.xid, asked.status,
       case when asked.status = 'committed' then pg_catalog.pg_notify(%(channel)s, '') end as rung,
       pg_catalog.set_config('synchronous_commit', 'off', true)
  from (select a.xid, pg_catalog.pg_xact_status(a.xid::text::xid8) as status
          from unnest(%(xids)s::bigint[]) as a (xid)
        offset 0) as asked
