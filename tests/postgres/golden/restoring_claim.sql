insert into "leasebook"."checkpoints" as c (name, at, position)
values ('log home', pg_catalog.clock_timestamp(), '{"system": "bundle"}')
on conflict (name) do update set position = excluded.position
