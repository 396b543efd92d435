insert into "leasebook"."checkpoints" as c (name, at, position)
select 'log home', pg_catalog.clock_timestamp(),
       pg_catalog.json_build_object('system', s.system_identifier::text)
  from pg_catalog.pg_control_system() as s
on conflict (name) do update set at = excluded.at, position = excluded.position
