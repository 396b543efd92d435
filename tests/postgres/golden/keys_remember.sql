with taken as (
    insert into "leasebook"."request_keys" (key, job_id, digest)
    select i.key, i.id, i.digest
      from unnest(%(keys)s::text[], %(ids)s::uuid[], %(digests)s::text[]) as i (key, id, digest)
     order by i.key collate "C"
        on conflict (key) do nothing
    returning key
)
select (select pg_catalog.array_agg(taken.key) from taken) as keys,
       pg_catalog.pg_current_xact_id()::text::bigint as xid
