with arrived as (
    insert into "leasebook"."group_inbox"
           (format, queue, name, group_key, subject, item, spec)
    select case when spec.on_expired is null and spec.ordering_key is null
                then 1 else 2 end,
           spec.queue, spec.name, spec.group_key, spec.subject, i.item::json, i.spec::json
      from unnest(%(items)s::text::text[], %(specs)s::text::text[])
           with ordinality as i (item, spec, place)
     cross join lateral pg_catalog.json_to_record(i.spec::json)
        as spec (queue text, name text, group_key text, subject text, on_expired text,
                 ordering_key text)
     order by i.place
    returning id
)
select pg_catalog.array_agg(arrived.id order by arrived.id) as ids,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from arrived
