with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), ended as materialized (
    select j.*
      from "leasebook"."jobs" as j
     where j.state = 'leased' and j.due_at <= (select at from clock) and j.format <= %(format)s
     order by j.due_at
     limit %(limit)s
       for update skip locked
)
select (select at from clock) as asked_at,
       ended.id, ended.queue, ended.priority, ended.name, ended.args, ended.enqueued_at,
       ended.retries, ended.timeout, ended.lease_seconds, ended.on_exhausted, ended.label,
       ended.owner, ended.subject, ended.expires_at, ended.group_key, ended.group_window,
       ended.group_max_hold, ended.group_max_size, ended.hold_until, ended.unique_key,
       ended.on_expired, ended.ordering_key, ended.on_hold, ended.after, ended.sequence,
       ended.version, ended.state, ended.due_at, ended.at, ended.held, ended.starts,
       ended.attempts, ended.interruptions, ended.lease, ended.worker, ended.started_at,
       ended.items, ended.outcome, ended.blocked_by, ended.blocked_due, ended.effects
  from ended
 order by ended.id
