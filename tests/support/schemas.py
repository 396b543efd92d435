"""Schema names that break careless quoting, and connections with odd settings."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

ODD_NAMES = ["Jobs-x", 'we"ird', "dépôt-日本", "a.b", ":x", "$$", "o'x\\y", "select", " ", "a\nb"]


def with_options(dsn: str, *settings: str) -> str:
    """The DSN, as key=value pairs, with settings such as `search_path=` for each session."""
    before = conninfo_to_dict(dsn).get("options") or ""
    options = "".join(f" -c {setting}" for setting in settings)
    return make_conninfo(dsn, options=f"{before}{options}")


def snapshot(dsn: str, schema: str) -> list[tuple[object, ...]]:
    """Everything in a schema as the server would write it down, in an order of its own."""
    query = """
    select 'relation', c.relname, c.relkind::text, coalesce(c.reloptions::text, ''),
        coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
    from pg_catalog.pg_class c where c.relnamespace = %(schema)s::regnamespace
    union all
    select 'column', c.relname || '.' || a.attname,
        pg_catalog.format_type(a.atttypid, a.atttypmod),
        a.attnotnull::text || a.attidentity::text,
        coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '')
    from pg_catalog.pg_class c
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    left join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = %(schema)s::regnamespace and c.relkind = 'r'
    union all
    select 'index', indexname, indexdef, '', ''
    from pg_catalog.pg_indexes where schemaname = %(name)s
    union all
    select 'trigger', t.tgname, pg_catalog.pg_get_triggerdef(t.oid), t.tgenabled::text, ''
    from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid
    where c.relnamespace = %(schema)s::regnamespace
    union all
    select 'function', p.proname, pg_catalog.pg_get_functiondef(p.oid), '', ''
    from pg_catalog.pg_proc p where p.pronamespace = %(schema)s::regnamespace
    order by 1, 2, 3
    """
    quoted = '"' + schema.replace('"', '""') + '"'
    with psycopg.connect(dsn) as connection:
        return connection.execute(query, {"schema": quoted, "name": schema}).fetchall()


@contextmanager
def role(dsn: str, name: str) -> Generator[sql.Identifier]:
    """A role without a login, for `set role`; gone afterwards with its rights in this database."""
    identifier = sql.Identifier(name)
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} nologin").format(identifier))
        try:
            yield identifier
        finally:
            admin.execute(sql.SQL("reassign owned by {} to current_user").format(identifier))
            admin.execute(sql.SQL("drop owned by {}").format(identifier))
            admin.execute(sql.SQL("drop role {}").format(identifier))
