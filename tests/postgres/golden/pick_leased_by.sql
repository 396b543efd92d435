with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), held as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.state = 'leased' and j.worker = %(worker)s and j.format <= %(format)s
     order by j.due_at
     limit %(limit)s
       for update skip locked
)
select (select at from clock) as asked_at,
       held.id, held.queue, held.priority, held.name, held.args, held.enqueued_at, held.retries,
       held.timeout, held.lease_seconds, held.on_exhausted, held.label, held.owner,
       held.subject, held.expires_at, held.group_key, held.group_window, held.group_max_hold,
       held.group_max_size, held.hold_until, held.unique_key, held.on_expired,
       held.ordering_key, held.on_hold, held.after, held.sequence, held.version, held.state,
       held.due_at, held.at, held.held, held.starts, held.attempts, held.interruptions,
       held.lease, held.worker, held.started_at, held.items, held.outcome, held.blocked_by,
       held.blocked_due, held.effects
  from held
 order by held.id
