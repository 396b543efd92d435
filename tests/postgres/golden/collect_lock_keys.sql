with oldest as materialized (
    select i.id, i.queue, i.name, i.group_key
      from "leasebook"."group_inbox" as i
     where i.format <= %(format)s
     order by i.id
     limit %(limit)s
), keys as materialized (
    select oldest.queue, oldest.name, oldest.group_key,
           pg_catalog.array_agg(oldest.id order by oldest.id) as ids
      from oldest
     group by oldest.queue, oldest.name, oldest.group_key
     order by pg_catalog.min(oldest.id)
     limit %(keys)s
), tried as materialized (
    select keys.*, pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
               pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'group', keys.queue, keys.name,
                                    keys.group_key), 0)) as ours
      from keys
)
select tried.queue, tried.name, tried.group_key, tried.ids
  from tried where tried.ours
