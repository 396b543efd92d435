"""What Alembic runs for `leasebook migrate`.

The caller owns the connection and its one transaction: READ COMMITTED, so that whoever waited for
the lock then sees what the one before it did.  Everything happens in it or nothing.
"""

from __future__ import annotations

import hashlib

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.sql import quoted_name

from leasebook.migrations import VERSION_TABLE
from leasebook.migrations.script import run

schema: str = context.config.attributes["schema"]
quoted: str = context.config.attributes["quoted_schema"]
connection: Connection | None = context.config.attributes.get("connection")


def lock_number() -> int:
    """The advisory lock of this schema's migrators: a signed 64-bit number."""
    digest = hashlib.sha256(f"leasebook migrate {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


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
    run(migration, f"select pg_catalog.pg_advisory_xact_lock({lock_number()});")
    if not schema_exists():
        run(migration, f"create schema if not exists {quoted};")


context.configure(
    connection=connection,
    dialect_name="postgresql",
    dialect_opts={"paramstyle": "named"},
    version_table=VERSION_TABLE,
    version_table_schema=quoted_name(schema, quote=True),
)
with context.begin_transaction():
    prepare()
    context.run_migrations()
