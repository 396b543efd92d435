"""Reading the log between two snapshots: every committed event lies in exactly one window."""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT

#: The reader's row among the checkpoints that says where the log was written.
HOME = "log home"


def here(schema: Schema) -> str:
    """Where are we: what is committed now, in which cluster, and where was the log written?

    ``wrote`` tells that this transaction has written already.  A standby has no ``timeline``.
    """
    return f"""
select pg_catalog.pg_is_in_recovery() as standby,
       pg_catalog.pg_current_xact_id_if_assigned() is not null as wrote,
       pg_catalog.pg_current_snapshot()::text as snapshot,
       (select s.system_identifier::text from pg_catalog.pg_control_system() as s) as system,
       case when not pg_catalog.pg_is_in_recovery() then
            pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)
       end as timeline,
       (select c.position ->> 'system' from {schema.table("checkpoints")} as c
         where c.name = '{HOME}') as home
"""


def summarize(schema: Schema) -> str:
    """Let the indexes know the newest pages."""
    return f"select {schema.table('summarize_log')}()"


def events(schema: Schema) -> str:
    """Which events were committed after one snapshot and before another, by job and version?

    The ranges are for the index, the two checks are the truth.
    """
    columns = f"e.job_id, e.version, e.event_id, e.xid, {', '.join(f'e.{name}' for name in EVENT)}"
    return _window(columns, f"{schema.table('job_events')} as e", "e.xid", "1, 2")


def touched(schema: Schema) -> str:
    """To which jobs do those events belong?  One row for each event, in order of job."""
    return _window("e.job_id", f"{schema.table('job_events')} as e", "e.xid", "1")


def audit(schema: Schema) -> str:
    """The same of the audit log, by number."""
    columns = "a.id, a.xid, a.at, a.kind, a.detail, a.job_id, a.worker"
    return _window(columns, f"{schema.table('audit_log')} as a", "a.xid", "1")


def take_turn() -> str:
    """Are we the only reader of this name until the transaction ends?  (It writes nothing.)"""
    parts = "pg_catalog.concat_ws(e'\\x1f', %(schema)s::text, 'reader', %(name)s::text)"
    return f"""
select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended({parts}, 0))
"""


def checkpoint(schema: Schema) -> str:
    """How far has this reader come?"""
    return f"""
select c.position from {schema.table("checkpoints")} as c where c.name = %(name)s
"""


def move_checkpoint(schema: Schema) -> str:
    """This reader has come so far; it counts when the transaction commits."""
    return f"""
insert into {schema.table("checkpoints")} as c (name, at, position)
values (%(name)s, pg_catalog.clock_timestamp(), %(position)s::text::json)
on conflict (name) do update set at = excluded.at, position = excluded.position
"""


def drop_checkpoint(schema: Schema) -> str:
    """Forget how far this reader has come."""
    return f"""
delete from {schema.table("checkpoints")} where name = %(name)s
"""


def adopt(schema: Schema) -> str:
    """The transaction numbers of the log are those of this cluster."""
    return f"""
insert into {schema.table("checkpoints")} as c (name, at, position)
select '{HOME}', pg_catalog.clock_timestamp(),
       pg_catalog.json_build_object('system', s.system_identifier::text)
  from pg_catalog.pg_control_system() as s
on conflict (name) do update set at = excluded.at, position = excluded.position
"""


def _window(columns: str, source: str, xid: str, order: str) -> str:
    """Two questions, because a planner with poor statistics would answer one from all pages."""
    checks = f"""   and {seen(xid)}
   and not {seen(xid, "after")}"""
    return f"""
select {columns}
  from {source}
 where {xid} >= %(begin)s and {xid} < %(end)s
{checks}
 union all
select {columns}
  from {source}
 where {xid} = any (%(open)s::bigint[])
{checks}
 order by {order}
"""


def seen(xid: str, snapshot: str = "upto") -> str:
    """Whether a snapshot sees what the transaction ``xid`` has committed."""
    number = f"{xid}::text::xid8"
    return f"pg_catalog.pg_visible_in_snapshot({number}, %({snapshot})s::text::pg_snapshot)"
