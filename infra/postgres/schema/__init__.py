"""The schema: its name, how it is made, and whether it is complete.

    migrate("postgresql://localhost/shop", "jobs")
    require_schema(connection, Schema("jobs"))

A worker checks at each start, so the check needs psycopg alone and two catalog queries; Alembic
and SQLAlchemy are loaded by `migrate` only.
"""

from __future__ import annotations

from ..dsn import InvalidDsn
from .check import check_schema, require_schema
from .errors import MigrationFailed, SchemaIncomplete, SchemaNewer
from .migrate import migrate, migrate_sql
from .name import DEFAULT, Schema

__all__ = [
    "DEFAULT",
    "InvalidDsn",
    "MigrationFailed",
    "Schema",
    "SchemaIncomplete",
    "SchemaNewer",
    "check_schema",
    "migrate",
    "migrate_sql",
    "require_schema",
]
