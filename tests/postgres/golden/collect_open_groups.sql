select (
           select true
             from "leasebook"."jobs" as j
            where j.state = 'grouped' and j.queue = key.queue and j.name = key.name
              and j.group_key = key.group_key) as seen,
       (
           select (e.data -> 'ids' ->> -1)::bigint
             from "leasebook"."job_events" as e
            where e.job_id = open.id and e.kind = %(joined)s
            order by e.version desc
            limit 1) as newest,
       open.id, open.queue, open.priority, open.name, open.args, open.enqueued_at, open.retries,
       open.timeout, open.lease_seconds, open.on_exhausted, open.label, open.owner,
       open.subject, open.expires_at, open.group_key, open.group_window, open.group_max_hold,
       open.group_max_size, open.hold_until, open.unique_key, open.on_expired,
       open.ordering_key, open.on_hold, open.after, open.sequence, open.version, open.state,
       open.due_at, open.at, open.held, open.starts, open.attempts, open.interruptions,
       open.lease, open.worker, open.started_at, open.items, open.outcome, open.blocked_by,
       open.blocked_due, open.effects
  from unnest(%(queues)s::text[], %(names)s::text[], %(group_keys)s::text[])
       with ordinality as key (queue, name, group_key, place)
  left join lateral (
       select j.*
         from "leasebook"."jobs" as j
        where j.state = 'grouped' and j.queue = key.queue and j.name = key.name
          and j.group_key = key.group_key and j.format <= %(format)s
          for update skip locked
       ) as open on true
 order by key.place
