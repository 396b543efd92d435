insert into "leasebook"."job_events" (job_id, version, kind, at, due_at, lease, worker, data)
select hit.id, hit.version,
           hit.event_kind, hit.event_at, hit.event_due_at, hit.event_lease, hit.event_worker,
           hit.event_data::json
  from unnest(%(id)s::uuid[], %(version)s::bigint[], %(event_kind)s::text[],
                  %(event_at)s::timestamptz[], %(event_due_at)s::timestamptz[],
                  %(event_lease)s::bigint[], %(event_worker)s::text[], %(event_data)s::text[])
    as hit (id, version, event_kind, event_at, event_due_at, event_lease, event_worker,
              event_data)
 order by hit.id, hit.version
