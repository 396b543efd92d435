select asked.xid, pg_catalog.pg_xact_status(asked.xid::text::xid8) as status
  from unnest(%(xids)s::bigint[]) as asked (xid)
