"""Reading somebody's queue table, which is never changed, and remembering what was taken from it.

The conditions and the columns come from a map that an operator wrote; they run with the operator's
own rights.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ..schema.name import Schema


def quoted(name: str) -> str:
    """An identifier as it is written in a statement with parameters."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def predicate(condition: str) -> str:
    """A condition as it is written in a statement with parameters; what is unknown is false."""
    # A line of its own, so that a comment at its end comments nothing else out.
    return "(" + condition.replace("%", "%%") + "\n) is true"


@frozen
class OldNames:
    """The table and what is read of it.  ``keys`` are (column, type) of the primary key."""

    schema: str
    table: str
    keys: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    columns: tuple[str, ...]
    where: str
    finished: str

    @property
    def name(self) -> str:
        """The table as it is written in a statement with parameters."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"


def find() -> str:
    """Which table is meant, what kind is it, and may this role read and lock its rows?"""
    return """
select n.nspname::text, c.relname::text, c.relkind::text,
       pg_catalog.has_table_privilege(c.oid, 'select')
   and (pg_catalog.has_table_privilege(c.oid, 'update')
        or pg_catalog.has_table_privilege(c.oid, 'delete')) as usable
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where c.oid = coalesce(pg_catalog.to_regclass(%(name)s),
                        pg_catalog.to_regclass(pg_catalog.quote_ident(%(name)s)))
"""


def tables() -> str:
    """Which tables could have been meant?"""
    return """
select case when pg_catalog.pg_table_is_visible(c.oid) then c.relname::text
            else n.nspname || '.' || c.relname end
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema')
 order by 1
 limit 1000
"""


def columns() -> str:
    """Which columns has the table, of which types, and which are its primary key?"""
    return """
select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.array_position(i.indkey::smallint[], a.attnum) as place_in_key
  from pg_catalog.pg_attribute as a
  join pg_catalog.pg_class as c on c.oid = a.attrelid
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  left join pg_catalog.pg_index as i on i.indrelid = c.oid and i.indisprimary
 where n.nspname = %(schema)s and c.relname = %(table)s and a.attnum > 0 and not a.attisdropped
 order by a.attnum
"""


def survey(schema: Schema, old: OldNames) -> str:
    """Which rows are not over, in their order, and which of them have been imported?

    ``copies`` counts the rows of a key, ``place`` names a row that has no key.
    """
    keys = [f"t.{quoted(column)}" for column, _ in old.keys]
    order = [f"t.{quoted(column)}" for column in old.order]
    key = _key(keys)
    return f"""
select {key} as key,
       {" or ".join(f"{each} is null" for each in keys)} as keyless,
       pg_catalog.count(*) over (partition by {", ".join(keys)}) as copies,
       t.ctid::text as place,
       exists (select from {schema.table("imported_rows")} as i
                where i.source = %(source)s and i.key = {key}) as imported
  from {old.name} as t
 where not ({predicate(old.finished)}) or ({predicate(old.where)})
 order by {", ".join([*order, *keys])}
"""


def finished(old: OldNames) -> str:
    """How many rows are over?  And what time is it?"""
    return f"""
select pg_catalog.count(*), pg_catalog.clock_timestamp()
  from {old.name} as t
 where {predicate(old.finished)}
"""


def lock(old: OldNames) -> str:
    """What do these rows say, now that they are locked?  Those that others hold are left out."""
    return f"""
with {_asked(old)}
select asked.place, {predicate(old.where)} as waiting, {predicate(old.finished)} as finished,
       {_values(old)} as row
  from asked
  join {old.name} as t on {_match(old)}
 order by asked.place
   for update of t skip locked
"""


def present(old: OldNames) -> str:
    """Which of these rows are there, locked or not?"""
    return f"""
with {_asked(old)}
select asked.place
  from asked
  join {old.name} as t on {_match(old)}
"""


def alone() -> str:
    """Be the only importer of this table until the transaction ends."""
    return """
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(
           pg_catalog.concat_ws(e'\\x1f', %(schema)s::text, 'import', %(source)s::text), 0))
"""


def claim(schema: Schema) -> str:
    """Which of these rows had not been imported?  From now on they have."""
    return f"""
insert into {schema.table("imported_rows")} (source, key)
select %(source)s, asked.key from unnest(%(keys)s::text[]) as asked (key)
on conflict (source, key) do nothing
returning key
"""


def evidence(schema: Schema) -> str:
    """Append to the audit log what it does not hold under the same request id."""
    return f"""
insert into {schema.table("audit_log")} (kind, request_id, detail)
select e.kind, e.request_id, e.detail::json
  from unnest(%(kinds)s::text[], %(request_ids)s::text[], %(details)s::text[])
       with ordinality as e (kind, request_id, detail, place)
 order by e.place
on conflict (request_id) do nothing
"""


def writers() -> str:
    """Which other sessions have written to the table in a transaction that is still open?"""
    return """
select distinct l.pid
  from pg_catalog.pg_locks as l
 where l.locktype = 'relation' and l.granted
   and l.database = (select d.oid from pg_catalog.pg_database as d
                      where d.datname = pg_catalog.current_database())
   and l.relation = %(table)s::regclass
   and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                  'AccessExclusiveLock')
   and l.pid <> pg_catalog.pg_backend_pid()
 order by 1
"""


def guarded() -> str:
    """Does the guard stand on the table?"""
    return """
select exists (select from pg_catalog.pg_trigger as t
                where t.tgrelid = %(table)s::regclass and t.tgname = 'leasebook_cut_over')
"""


def guard(schema: Schema, old: OldNames, hint: str, *, partitioned: bool) -> tuple[str, str]:
    """Refuse new and changed rows from now on, in every session; two statements.

    On a partitioned table for each row, because a trigger for statements would not see what is
    written to a partition by its own name.
    """
    each = "row" if partitioned else "statement"
    literal = "'" + hint.replace("'", "''") + "'"
    name = old.name.replace("%%", "%")
    return (
        f"""
create trigger leasebook_cut_over before insert or update on {name}
   for each {each} execute function {schema.table("refuse_old_queue")}({literal})
""",
        f"alter table {name} enable always trigger leasebook_cut_over",
    )


def unguard(old: OldNames) -> str:
    """Take the guard away."""
    return f"""
drop trigger if exists leasebook_cut_over on {old.name.replace("%%", "%")}
"""


def _key(columns: Sequence[str]) -> str:
    texts = ", ".join(f"{each}::text" for each in columns)
    return f"pg_catalog.array_to_json(array[{texts}])::text"


def _asked(old: OldNames) -> str:
    numbers = range(len(old.keys))
    arrays = ", ".join(f"%(key{number})s::text[]" for number in numbers)
    names = ", ".join(f"k{number}" for number in numbers)
    typed = ", ".join(f"k.k{number}::{old.keys[number][1]} as k{number}" for number in numbers)
    return f"""asked as materialized (
    select k.place, {typed}
      from unnest({arrays}) with ordinality as k ({names}, place)
)"""


def _match(old: OldNames) -> str:
    return " and ".join(
        f"t.{quoted(column)} = asked.k{number}" for number, (column, _) in enumerate(old.keys)
    )


def _values(old: OldNames) -> str:
    if not old.columns:
        return "'{}'::text"
    names = ", ".join(f"t.{quoted(column)}" for column in old.columns)
    return f"(select pg_catalog.row_to_json(v)::text from (select {names}) as v)"
