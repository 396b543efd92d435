"""Reading history in pieces: each statement is short, and goes by the primary key."""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT
from .windows import seen


def events(schema: Schema) -> str:
    """The next piece of the log by job and version, without what was over before ``since``.

    Given a snapshot ``upto`` it is the log as that one sees it.

    Every row begins with the place where the piece ends; when nothing of a piece is wanted, it is
    one row with nothing else.  No row at all: the log ends here.
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
), member as materialized (
    select distinct piece.job_id from piece
), over as materialized (
    select member.job_id
      from member
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
   and (%(upto)s::text is null or {seen("piece.xid")})
   and piece.job_id not in (select over.job_id from over)
 order by piece.job_id, piece.version
"""


def audit(schema: Schema) -> str:
    """The next piece of the audit log, of some kinds only, by number."""
    return f"""
select a.id, a.at, a.kind, a.detail, a.job_id, a.worker
  from {schema.table("audit_log")} as a
 where a.id > %(after)s and a.at <= %(until)s::timestamptz and a.kind = any (%(kinds)s::text[])
   and (%(upto)s::text is null or {seen("a.xid")})
 order by a.id
 limit %(limit)s
"""
