with arrived as (
    insert into "leasebook"."group_inbox"
           (format, queue, name, group_key, subject, item, spec)
    select 1, spec.queue, spec.name, spec.group_key, spec.subject, i.item::json,
           i.spec::json
      from unnest(%(items)s::text::text[], %(specs)s::text::text[])
           with ordinality as i (item, spec, place)
     cross join lateral pg_catalog.json_to_record(i.spec::json)
        as spec (queue text, name text, group_key text, subject text)
     order by i.place
    returning id
)
select pg_catalog.array_agg(arrived.id order by arrived.id) as ids,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from arrived
