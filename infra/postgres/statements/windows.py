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


def audit(schema: Schema) -> str:
    """The same of the audit log, by number."""
    columns = "a.id, a.xid, a.at, a.kind, a.detail, a.job_id, a.worker"
    return _window(columns, f"{schema.table('audit_log')} as a", "a.xid", "1")


def streams(schema: Schema) -> str:
    """The next piece of the log by job and version, as far as a snapshot sees it.

    Streams that had completed before ``since`` are left out.  Every row begins with the place where
    the piece ends; when nothing of a piece is wanted, it is one row with nothing else.  No row at
    all: the log ends here.
    """
    columns = ", ".join(f"piece.{name}" for name in EVENT)
    table = schema.table("job_events")
    return f"""
with piece as materialized (
    select e.*
      from {table} as e
     where (e.job_id, e.version) > (%(job)s::uuid, %(version)s::bigint)
     order by e.job_id, e.version
     limit %(limit)s
), place as materialized (
    select piece.job_id, piece.version
      from piece
     order by piece.job_id desc, piece.version desc
     limit 1
), over as materialized (
    select member.job_id
      from (select distinct piece.job_id from piece) as member
     where exists (
           select from {table} as e
            where e.job_id = member.job_id and e.kind = 'completed.v1'
              and e.at < %(since)s::timestamptz)
)
select place.job_id as place_job, place.version as place_version,
       piece.job_id, piece.version, piece.event_id, piece.xid, {columns}
  from place
  left join piece
    on piece.at <= %(until)s::timestamptz
   and {_seen("piece.xid")}
   and piece.job_id not in (select over.job_id from over)
 order by piece.job_id, piece.version
"""


def audit_pieces(schema: Schema) -> str:
    """The next piece of the audit log by number, as far as a snapshot sees it."""
    return f"""
select a.id, a.xid, a.at, a.kind, a.detail, a.job_id, a.worker
  from {schema.table("audit_log")} as a
 where a.id > %(number)s and a.at <= %(until)s::timestamptz and {_seen("a.xid")}
 order by a.id
 limit %(limit)s
"""


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
    checks = f"""   and {_seen(xid)}
   and not {_seen(xid, "after")}"""
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


def _seen(xid: str, snapshot: str = "upto") -> str:
    number = f"{xid}::text::xid8"
    return f"pg_catalog.pg_visible_in_snapshot({number}, %({snapshot})s::text::pg_snapshot)"
