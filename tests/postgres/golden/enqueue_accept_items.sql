with input as materialized (
    select i.place, i.format, i.item::json as item, i.spec::json as document, spec.*
      from unnest(%(items)s::text::text[], %(formats)s::text::smallint[],
                  %(specs)s::text::text[])
           with ordinality as i (item, format, spec, place)
     cross join lateral pg_catalog.json_to_record(i.spec::json)
        as spec (queue text, name text, group_key text, subject text, ordering_key text)
     order by i.place
), locked as materialized (
    select pg_catalog.count(pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'order', k.key), 0))) as keys
      from (select distinct input.ordering_key as key from input
             where input.ordering_key is not null order by 1) as k
), arrived as (
    insert into "leasebook"."group_inbox"
           (format, queue, name, group_key, subject, item, spec, ordering_key, sequence)
    select numbered.format, numbered.queue, numbered.name, numbered.group_key,
           numbered.subject, numbered.item, numbered.document, numbered.ordering_key,
           numbered.sequence
      from (select input.*,
                   case when input.ordering_key is not null
                        then pg_catalog.nextval('"leasebook"."job_events_event_id_seq"'::regclass) end as sequence
              from input
             where (select locked.keys from locked) >= 0
             order by input.place) as numbered
     order by numbered.place
    returning id
)
select pg_catalog.array_agg(arrived.id order by arrived.id) as ids,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
  from arrived
