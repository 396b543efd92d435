"""Holding the claim table against the log: what is read in chunks, and how rows are mended."""

from __future__ import annotations

from ....projections.row import FORMAT
from ..schema.name import Schema
from .append import CASTS, TYPES
from .columns import EVENT, SPEC, STATE, job_columns, wrapped


def estimate() -> str:
    """About how many events does the log hold, as the last vacuum saw it?"""
    return """
select greatest(c.reltuples, 0)::bigint
  from pg_catalog.pg_class as c
 where c.oid = pg_catalog.to_regclass(%(table)s)
"""


def chunk_end(schema: Schema) -> str:
    """Where do the next events end?  None at the end of the log."""
    return f"""
select (select e.job_id
          from {schema.table("job_events")} as e
         where e.job_id > %(after)s::uuid
         order by e.job_id, e.version
        offset %(limit)s limit 1) as last
"""


def events(schema: Schema) -> str:
    """The streams of a range of jobs."""
    return f"""
select e.job_id, e.version, e.event_id, e.xid, {", ".join(f"e.{name}" for name in EVENT)}
  from {schema.table("job_events")} as e
 where e.job_id > %(after)s::uuid and e.job_id <= %(last)s::uuid
 order by e.job_id, e.version
"""


def rows(schema: Schema) -> str:
    """The rows of a range of jobs."""
    return f"""
{_rows(schema)}
 where j.id > %(after)s::uuid and j.id <= %(last)s::uuid
 order by j.id
"""


def rows_of(schema: Schema) -> str:
    """The rows of these jobs."""
    return f"""
{_rows(schema)}
 where j.id = any (%(ids)s::uuid[])
 order by j.id
"""


def awaited(schema: Schema) -> str:
    """By which of these jobs is another row blocked?"""
    return f"""
select distinct other.blocked_by
  from {schema.table("jobs")} as other
 where other.blocked_by = any (%(ids)s::uuid[]) and other.blocked_by is not null
"""


def lock(schema: Schema) -> str:
    """Lock the rows of these jobs, in order of id."""
    return f"""
select j.id from {schema.table("jobs")} as j
 where j.id = any (%(ids)s::uuid[])
 order by j.id
   for update
"""


def drop(schema: Schema) -> str:
    """Take these rows away."""
    return f"""
delete from {schema.table("jobs")} where id = any (%(ids)s::uuid[])
"""


def put(schema: Schema, table: str = "jobs") -> str:
    """Write these rows, in place of what stands there."""
    kept = ("seq", "has_waiter", *SPEC, *STATE)
    values = wrapped([f"i.{name}{CASTS.get(name, '')}" for name in kept], indent=7)
    arrays = wrapped([f"%({name})s::{_type(name)}[]" for name in kept], indent=18)
    changed = ",\n       ".join(
        f"{name} = excluded.{name}" for name in kept if name not in ("id", "format")
    )
    return f"""
insert into {schema.table(table)} as j (
       {wrapped(kept, indent=7)})
select {values}
  from unnest({arrays})
    as i ({wrapped(kept, indent=11)})
 order by i.id
on conflict (id) do update set
       {changed},
       format = greatest(j.format, excluded.format)
 where j.format <= {FORMAT}
"""


def tell_blockers(schema: Schema, table: str = "jobs") -> str:
    """Let those who block these jobs know of it."""
    return tell(
        schema,
        table,
        f"""select own.blocked_by from {schema.table(table)} as own
        where own.id = any (%(ids)s::uuid[]) and own.blocked_by is not null""",
    )


def tell(schema: Schema, table: str, blockers: str) -> str:
    """Let the jobs of ``table`` whom ``blockers`` answers know that somebody waits for them."""
    return f"""
update {schema.table(table)} as j
   set has_waiter = true, format = greatest(j.format, {FORMAT}::smallint)
 where j.id = any (array(
       {blockers}))
   and not j.has_waiter
"""


def _rows(schema: Schema) -> str:
    return f"""select j.id, j.seq, j.suspect, j.has_waiter, {job_columns("j")}
  from {schema.table("jobs")} as j"""


def _type(name: str) -> str:
    match name:
        case "seq":
            return "bigint"
        case "has_waiter":
            return "boolean"
        case _:
            return TYPES.get(name, "text")
