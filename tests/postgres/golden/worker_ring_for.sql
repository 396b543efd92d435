with asked as materialized (
    select a.xid, pg_catalog.pg_xact_status(a.xid::text::xid8) as status
      from unnest(%(xids)s::bigint[]) as a (xid)
), rung as materialized (
    select pg_catalog.pg_notify(%(channel)s, '') as told
     where exists (select from asked where asked.status = 'committed')
)
select asked.xid, asked.status, (select pg_catalog.count(rung.told) from rung) as rings
  from asked
