insert into "leasebook"."imported_rows" (source, key)
select %(source)s, asked.key from unnest(%(keys)s::text[]) as asked (key)
on conflict (source, key) do nothing
returning key
