"""The shadow of the claim table: how it is made, filled and put in the table's place.

What depends on the catalog is asked for as statements, which are then said one after the other.
Until the swap the indexes of the shadow are named after the oid of the one they stand for.
"""

from __future__ import annotations

from ..schema.name import Schema
from .columns import SPEC, STATE
from .rebuilding import tell

JOBS = "jobs"
SHADOW = "jobs_shadow"
#: Every column that a row is made of.  A table with more is one of a newer release, or changed.
COLUMNS = ("seq", "has_waiter", *SPEC, *STATE)


def in_the_way(schema: Schema) -> str:
    """What hangs on the claim table, or is in it, that a new table would not have?"""
    return f"""
with {_tables(schema)}
select pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)
  from jobs
  join pg_catalog.pg_depend as d
    on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = jobs.oid
    or d.refclassid = 'pg_catalog.pg_type'::regclass and d.refobjid in (
       select t.oid from pg_catalog.pg_type as t
        where jobs.reltype in (t.oid, t.typelem))
 where d.deptype in ('n', 'a')
   and not (d.classid = 'pg_catalog.pg_class'::regclass and d.objid in (
            select i.indexrelid from pg_catalog.pg_index as i where i.indrelid = jobs.oid))
   and d.classid <> 'pg_catalog.pg_attrdef'::regclass
   and not (d.classid = 'pg_catalog.pg_constraint'::regclass and d.objid in (
            select k.oid from pg_catalog.pg_constraint as k
             where k.conrelid = jobs.oid and k.contype in ('p', 'c', 'n')))
union
select 'column ' || a.attname
  from jobs
  join pg_catalog.pg_attribute as a on a.attrelid = jobs.oid
 where a.attnum > 0 and not a.attisdropped and a.attname <> all (%(columns)s::text[])
union
select 'row security' from jobs where jobs.relrowsecurity
union
select 'replica identity' from jobs where jobs.relreplident <> 'd'
union
select 'a table of the name {SHADOW}' from shadow
 where not exists (select from {schema.table("checkpoints")} as c where c.name = %(name)s)
order by 1
"""


def making(schema: Schema) -> str:
    """With which statements is an empty shadow made?"""
    jobs, shadow = _quoted(schema.table(JOBS)), _quoted(schema.table(SHADOW))
    return f"""
with {_tables(schema)}
select s.statement
  from jobs cross join lateral (values
    (1, 'create table {shadow} (like {jobs} including all excluding indexes)'),
    (2, 'alter table {shadow} owner to '
        || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(jobs.relowner))),
    (3, 'alter table {shadow} set (' || (
        select pg_catalog.string_agg(
               pg_catalog.quote_ident(o.option_name) || '='
               || pg_catalog.quote_literal(o.option_value), ', ')
          from pg_catalog.pg_options_to_table(jobs.reloptions) as o) || ')'),
    (4, 'comment on table {shadow} is '
        || pg_catalog.quote_literal(pg_catalog.obj_description(jobs.oid, 'pg_class'))),
    (5, (select 'alter table {shadow} add constraint shadow_' || k.conindid || ' '
                || pg_catalog.pg_get_constraintdef(k.oid)
           from pg_catalog.pg_constraint as k
          where k.conrelid = jobs.oid and k.contype = 'p'))
  ) as s (place, statement)
 where s.statement is not null
 order by s.place
"""


def unlike(schema: Schema) -> str:
    """Are the columns of the shadow other ones than those of the table?  No row: there is none."""
    columns = """
        select a.attname, a.atttypid, a.atttypmod, a.attnotnull,
               pg_catalog.pg_get_expr(f.adbin, f.adrelid)
          from pg_catalog.pg_attribute as a
          left join pg_catalog.pg_attrdef as f on f.adrelid = a.attrelid and f.adnum = a.attnum
         where a.attnum > 0 and not a.attisdropped and a.attrelid ="""
    return f"""
with {_tables(schema)}
select exists ({columns} jobs.oid
        except {columns} shadow.oid)
    or exists ({columns} shadow.oid
        except {columns} jobs.oid)
  from jobs, shadow
"""


def indexing(schema: Schema) -> str:
    """With which statements do the indexes of the shadow become those of the table?"""
    return f"""
with {_tables(schema)}
select 'drop index ' || i.indexrelid::pg_catalog.regclass
  from jobs, shadow, pg_catalog.pg_index as i
  join pg_catalog.pg_class as x on x.oid = i.indexrelid
 where i.indrelid = shadow.oid and x.relname not in (
       select 'shadow_' || own.indexrelid
         from pg_catalog.pg_index as own where own.indrelid = jobs.oid)
union all
select case when i.indisunique then 'create unique index ' else 'create index ' end
       || 'shadow_' || i.indexrelid || ' on {_quoted(schema.table(SHADOW))}'
       || pg_catalog.substr(made.as, pg_catalog.strpos(made.as, ' USING '))
  from jobs, shadow, pg_catalog.pg_index as i
 cross join lateral pg_catalog.pg_get_indexdef(i.indexrelid) as made ("as")
 where i.indrelid = jobs.oid and i.indisvalid and 'shadow_' || i.indexrelid not in (
       select x.relname
         from pg_catalog.pg_index as its
         join pg_catalog.pg_class as x on x.oid = its.indexrelid
        where its.indrelid = shadow.oid)
"""


def swapping(schema: Schema) -> str:
    """With which statements does the shadow take the place, the rights and the names?"""
    jobs, shadow = _quoted(schema.table(JOBS)), _quoted(schema.table(SHADOW))
    index = _quoted(schema.table("shadow_")).removesuffix('"')
    grant = """pg_catalog.concat(' to ',
        case when g.grantee = 0 then 'public'
             else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end,
        case when g.is_grantable then ' with grant option' end)"""
    return f"""
with {_tables(schema)}, steps (place, statement) as (
    select 1, 'revoke all on {shadow} from '
        || case when g.grantee = 0 then 'public'
                else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end
      from jobs, shadow, pg_catalog.aclexplode(
           coalesce(shadow.relacl, pg_catalog.acldefault('r', shadow.relowner))) as g
     where jobs.relacl is not null or shadow.relacl is not null
    union
    select 2, 'grant ' || g.privilege_type || ' on {shadow}' || {grant}
      from jobs, shadow, pg_catalog.aclexplode(
           coalesce(jobs.relacl, pg_catalog.acldefault('r', jobs.relowner))) as g
     where jobs.relacl is not null or shadow.relacl is not null
    union
    select 3, 'grant ' || g.privilege_type || ' (' || pg_catalog.quote_ident(a.attname)
        || ') on {shadow}' || {grant}
      from jobs
      join pg_catalog.pg_attribute as a on a.attrelid = jobs.oid
     cross join lateral pg_catalog.aclexplode(a.attacl) as g
    union
    select 4, 'drop table {jobs}'
    union
    select 5, 'alter table {shadow} rename to {JOBS}'
    union
    select 6, 'alter index {index}' || i.indexrelid || '" rename to '
        || pg_catalog.quote_ident(x.relname)
      from jobs
      join pg_catalog.pg_index as i on i.indrelid = jobs.oid and i.indisvalid
      join pg_catalog.pg_class as x on x.oid = i.indexrelid
)
select steps.statement from steps order by steps.place, steps.statement
"""


def clear(schema: Schema) -> str:
    """Take the rows of these jobs out; how many were there?"""
    return f"""
with gone as (
    delete from {schema.table(SHADOW)} as j where j.id = any (%(ids)s::uuid[]) returning j.id
)
select pg_catalog.count(*) from gone
"""


def tell_awaited(schema: Schema) -> str:
    """Let those of these jobs know of it that block another one."""
    return tell(
        schema,
        SHADOW,
        f"""select other.blocked_by from {schema.table(SHADOW)} as other
        where other.blocked_by = any (%(ids)s::uuid[]) and other.blocked_by is not null""",
    )


def tell_all(schema: Schema) -> str:
    """Let everybody know who blocks another one."""
    return tell(
        schema,
        SHADOW,
        f"""select distinct other.blocked_by from {schema.table(SHADOW)} as other
        where other.blocked_by is not null""",
    )


def count(schema: Schema) -> str:
    """How many rows has the shadow?"""
    return f"select pg_catalog.count(*) from {schema.table(SHADOW)}"


def keep_others_out(schema: Schema) -> str:
    """Hold off vacuum and changes of the table's definition, and nobody else.

    Waited for a second, so that the server ends an automatic vacuum that is in the way.
    """
    return f"""
set local lock_timeout = '5s';
lock table {schema.table(JOBS)} in share update exclusive mode;
lock table {schema.table(SHADOW)} in access exclusive mode;
"""


def close_gate(schema: Schema, milliseconds: int) -> str:
    """Let nobody at the table, if that can be had in a moment; afterwards be quick."""
    return f"""
set local lock_timeout = {milliseconds};
lock table {schema.table(JOBS)} in access exclusive mode;
set local statement_timeout = '1s';
set local idle_in_transaction_session_timeout = '1s';
"""


def holders(schema: Schema) -> str:
    """Who has had a lock on the table for longer than the gate waits?"""
    return """
select distinct l.pid
  from pg_catalog.pg_locks as l
  left join pg_catalog.pg_stat_activity as a on a.pid = l.pid
 where l.locktype = 'relation' and l.granted and l.pid <> pg_catalog.pg_backend_pid()
   and l.database = (select d.oid from pg_catalog.pg_database as d
                      where d.datname = pg_catalog.current_database())
   and l.relation = pg_catalog.to_regclass(%(table)s)
   and coalesce(a.xact_start < pg_catalog.clock_timestamp() - interval '200 ms', true)
 order by 1
"""


def old_snapshots() -> str:
    """Whose transaction goes on in a snapshot that would not see the rows of a new table?"""
    return """
select a.pid
  from pg_catalog.pg_stat_activity as a
 where a.datname = pg_catalog.current_database() and a.backend_xmin is not null
   and a.state like 'idle in transaction%%' and a.pid <> pg_catalog.pg_backend_pid()
 order by 1
"""


def _tables(schema: Schema) -> str:
    """Both tables as the catalog has them."""
    return f"""jobs as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('{_quoted(schema.table(JOBS))}')
), shadow as (
    select c.* from pg_catalog.pg_class as c
     where c.oid = pg_catalog.to_regclass('{_quoted(schema.table(SHADOW))}')
)"""


def _quoted(name: str) -> str:
    """A name as part of a text literal."""
    return name.replace("'", "''")
