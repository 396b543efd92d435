insert into "leasebook"."checkpoints" as c (name, at, position)
values (%(name)s, pg_catalog.clock_timestamp(), %(position)s::text::json)
on conflict (name) do update set at = excluded.at, position = excluded.position
