with asked as materialized (
    select k.place, k.k0::bigint as k0, k.k1::text as k1
      from unnest(%(key0)s::text[], %(key1)s::text[]) with ordinality as k (k0, k1, place)
)
select asked.place, (state = 'new'
) is true as waiting, (state = 'done'
) is true as finished,
       (select pg_catalog.row_to_json(v)::text from (select t."task", t."args") as v) as row
  from asked
  join "public"."old_queue" as t on t."id" = asked.k0 and t."part" = asked.k1
 order by asked.place
   for update of t skip locked
