select j.id, j.seq, j.suspect, j.has_waiter, j.id, j.queue, j.priority, j.name, j.args, j.enqueued_at, j.retries, j.timeout,
       j.lease_seconds, j.on_exhausted, j.label, j.owner, j.subject, j.expires_at, j.group_key,
       j.group_window, j.group_max_hold, j.group_max_size, j.hold_until, j.unique_key,
       j.on_expired, j.ordering_key, j.on_hold, j.after, j.sequence, j.version, j.state,
       j.due_at, j.at, j.held, j.starts, j.attempts, j.interruptions, j.lease, j.worker,
       j.started_at, j.items, j.outcome, j.blocked_by, j.blocked_due, j.effects
  from "leasebook"."jobs" as j
 where j.id > %(after)s::uuid and j.id <= %(last)s::uuid
 order by j.id
