"""Workers come, beat, die and leave; one of them leads; the audit log remembers."""

from __future__ import annotations

from ..schema.name import Schema
from .pick import holds_leases, own


def enroll(schema: Schema) -> str:
    """Put a worker on the list, with its start in the audit log."""
    return f"""
with enrolled as (
    insert into {schema.table("workers")} (id, name, host, pid, capacity, queues, code_version)
    values (%(id)s, %(name)s, %(host)s, %(pid)s, %(capacity)s, %(queues)s::text[],
            %(code_version)s)
    returning id
)
insert into {schema.table("audit_log")} (kind, worker, detail)
select 'worker_started', enrolled.id, %(detail)s::json from enrolled
"""


def leave(schema: Schema) -> str:
    """Take a worker off the list, with its stop in the audit log."""
    return f"""
with gone as (
    delete from {schema.table("workers")} where id = %(worker)s
)
insert into {schema.table("audit_log")} (kind, worker, detail)
values ('worker_stopped', %(worker)s, '{{}}')
"""


def beat(schema: Schema) -> str:
    """Count one heartbeat of a living worker.

    Nobody waits for the disk: one that is lost in a crash of the server harms nobody.
    """
    return f"""
update {schema.table("workers")}
   set beats = beats + 1, beat_at = pg_catalog.clock_timestamp()
 where id = %(worker)s and died_at is null
returning pg_catalog.set_config('synchronous_commit', 'off', true)
"""


def beats(schema: Schema) -> str:
    """How often has each living worker beaten?"""
    return f"""
select w.id, w.beats from {schema.table("workers")} as w where w.died_at is null
"""


def is_idle(schema: Schema) -> str:
    """Is this worker alive, and does it hold nothing, locked or not?"""
    return f"""
select exists (
       select from {schema.table("workers")} as w
        where w.id = %(worker)s and w.died_at is null)
   and not ({holds_leases(schema).strip()})
"""


def is_alive(schema: Schema) -> str:
    """Is this worker alive, and will it be until this transaction ends?

    The time is read after the lock, for which a reaper may have let us wait.
    """
    return f"""
with {own(schema)}
select pg_catalog.bool_and(own.died_at is null) as alive, pg_catalog.clock_timestamp() as at
  from own
"""


def bury(schema: Schema) -> str:
    """Mark a worker dead, unless it is already.

    FOR UPDATE first: the update alone would not wait for those who hold the row with KEY SHARE.
    """
    return f"""
with living as materialized (
    select w.id from {schema.table("workers")} as w
     where w.id = %(worker)s and w.died_at is null for update
), buried as (
    update {schema.table("workers")} as w
       set died_at = pg_catalog.clock_timestamp()
      from living
     where w.id = any (array[living.id])
    returning w.id
)
select pg_catalog.count(*) > 0 as buried, pg_catalog.clock_timestamp() as at from buried
"""


def lead() -> str:
    """Try to be the only one at a duty until the transaction ends."""
    return """
select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
           pg_catalog.concat_ws(e'\\x1f', %(schema)s::text, 'duty', %(duty)s::text), 0))
"""


def record(schema: Schema) -> str:
    """Append evidence to the audit log, in the order given."""
    return f"""
insert into {schema.table("audit_log")} (kind, job_id, worker, detail)
select e.kind, e.job_id, e.worker, e.detail::json
  from unnest(%(kinds)s::text[], %(job_ids)s::uuid[], %(workers)s::text[], %(details)s::text[])
       with ordinality as e (kind, job_id, worker, detail, place)
 order by e.place
"""


def ring() -> str:
    """Tell all listeners, with a payload of constant size; nobody waits for the disk."""
    return """
select pg_catalog.pg_notify(%(channel)s, ''),
       pg_catalog.set_config('synchronous_commit', 'off', true)
"""


def ring_for() -> str:
    """How did these transactions end?  All listeners are told, once, if some have committed.

    (The server sends equal notifications of one transaction once.)  Nobody waits for the disk.
    """
    return """
select asked.xid, asked.status,
       case when asked.status = 'committed' then pg_catalog.pg_notify(%(channel)s, '') end as rung,
       pg_catalog.set_config('synchronous_commit', 'off', true)
  from (select a.xid, pg_catalog.pg_xact_status(a.xid::text::xid8) as status
          from unnest(%(xids)s::bigint[]) as a (xid)
        offset 0) as asked
"""


def end_stuck_listeners() -> str:
    """End our sessions that write notifications to a process which has not read for ``seconds``.

    The server writes them inside a transaction, whose snapshot keeps vacuum from its work in the
    whole database.  A process that was stopped hears again when it goes on: it connects anew.
    (First they are found, and materialized, then ended: the planner must have no say in the order
    of these conditions, or it ends every session of the server.)
    """
    return """
with stuck as materialized (
    select a.pid
      from pg_catalog.pg_stat_activity as a
     where a.datname = pg_catalog.current_database() and a.usename = current_user
       and a.application_name = %(listener)s and a.wait_event = 'ClientWrite'
       and a.xact_start < pg_catalog.clock_timestamp() - %(seconds)s * interval '1 second'
)
select pg_catalog.count(pg_catalog.pg_terminate_backend(stuck.pid)) as ended from stuck
"""
