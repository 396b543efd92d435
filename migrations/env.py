"""What Alembic runs for `leasebook migrate`.

There are two ways.  A schema that is not there yet is made in one transaction of the caller's:
READ COMMITTED, so that whoever waited for the lock then sees what the one before it did; all of it
happens or nothing.  A schema that is in use is upgraded online: each step is a transaction of its
own, and the caller has made sure that it is the only migrator.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.sql import quoted_name

from leasebook.migrations import VERSION_TABLE
from leasebook.migrations.script import run

schema: str = context.config.attributes["schema"]
quoted: str = context.config.attributes["quoted_schema"]
lock_number: int = context.config.attributes["lock_number"]
online: bool = context.config.attributes["online"]
connection: Connection | None = context.config.attributes.get("connection")


def schema_exists() -> bool:
    """Asked first, as `create schema if not exists` needs the right to create even then."""
    if connection is None:
        return False
    found = text("select true from pg_catalog.pg_namespace where nspname = :name")
    return connection.scalar(found, {"name": schema}) is True


def prepare() -> None:
    """Keep other migrators out, let no search_path have a say, and have a schema."""
    migration = context.get_context()
    if connection is None:
        run(migration, "set transaction isolation level read committed;")
    run(migration, "set local search_path = pg_catalog;")
    run(migration, f"select pg_catalog.pg_advisory_xact_lock({lock_number});")
    if not schema_exists():
        run(migration, f"create schema if not exists {quoted};")


context.configure(
    connection=connection,
    dialect_name="postgresql",
    dialect_opts={"paramstyle": "named"},
    version_table=VERSION_TABLE,
    version_table_schema=quoted_name(schema, quote=True),
    transaction_per_migration=online,
)
with context.begin_transaction():
    if not online:
        prepare()
    context.run_migrations()
