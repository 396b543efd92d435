with found as materialized (
    select j.id from "leasebook"."jobs" as j
     where j.blocked_by = any (%(blockers)s::uuid[]) and j.blocked_by is not null
     union
    select j.id from "leasebook"."jobs" as j
     where j.after = any (%(parents)s::uuid[]) and j.after is not null
       and (j.blocked_by = j.after or j.held)
), locked as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.id = any (array(select found.id from found))
       and (j.blocked_by is not null or j.held)
     order by j.id
       for update skip locked
)
select (select pg_catalog.count(*) from found) as found, pg_catalog.clock_timestamp() as asked_at,
       locked.id, locked.queue, locked.priority, locked.name, locked.args, locked.enqueued_at,
       locked.retries, locked.timeout, locked.lease_seconds, locked.on_exhausted, locked.label,
       locked.owner, locked.subject, locked.expires_at, locked.group_key, locked.group_window,
       locked.group_max_hold, locked.group_max_size, locked.hold_until, locked.unique_key,
       locked.on_expired, locked.ordering_key, locked.on_hold, locked.after, locked.sequence,
       locked.version, locked.state, locked.due_at, locked.at, locked.held, locked.starts,
       locked.attempts, locked.interruptions, locked.lease, locked.worker, locked.started_at,
       locked.items, locked.outcome, locked.blocked_by, locked.blocked_due, locked.effects
  from (select) as always
  left join locked on true
 order by locked.id
