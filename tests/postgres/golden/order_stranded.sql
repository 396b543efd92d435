with found as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.blocked_by is not null and j.format <= %(format)s
       and (select blocker.seq from "leasebook"."jobs" as blocker
             where blocker.id = j.blocked_by
               and not (blocker.held and (blocker.id = j.after or blocker.on_hold is not null))
           ) is null
     limit %(limit)s
       for update of j skip locked
)
select pg_catalog.clock_timestamp() as asked_at,
       found.id, found.queue, found.priority, found.name, found.args, found.enqueued_at,
       found.retries, found.timeout, found.lease_seconds, found.on_exhausted, found.label,
       found.owner, found.subject, found.expires_at, found.group_key, found.group_window,
       found.group_max_hold, found.group_max_size, found.hold_until, found.unique_key,
       found.on_expired, found.ordering_key, found.on_hold, found.after, found.sequence,
       found.version, found.state, found.due_at, found.at, found.held, found.starts,
       found.attempts, found.interruptions, found.lease, found.worker, found.started_at,
       found.items, found.outcome, found.blocked_by, found.blocked_due, found.effects
  from found
 order by found.id
