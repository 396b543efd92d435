select pg_catalog.array_to_json(array[t."id"::text, t."part"::text])::text as key,
       t."id" is null or t."part" is null as keyless,
       pg_catalog.count(*) over (partition by t."id", t."part") as copies,
       t.ctid::text as place,
       exists (select from "leasebook"."imported_rows" as i
                where i.source = %(source)s and i.key = pg_catalog.array_to_json(array[t."id"::text, t."part"::text])::text) as imported
  from "public"."old_queue" as t
 where not ((state = 'done'
) is true) or ((state = 'new'
) is true)
 order by t."made_at", t."id", t."part"
