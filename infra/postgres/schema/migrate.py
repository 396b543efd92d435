"""Making and upgrading the schema, with Alembic behind a door that needs no alembic.ini."""

from __future__ import annotations

import threading
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from .... import migrations
from ..dsn import connect
from .errors import MigrationFailed, SchemaNewer
from .name import DEFAULT, Schema

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Engine

# Alembic keeps the migration that runs in global variables.
_ONE_AT_A_TIME = threading.Lock()


def migrate(dsn: str, schema: str = DEFAULT) -> None:
    """Create the schema, or bring it to this release; does nothing when it is there already.

    One transaction; migrators of one schema wait for each other, in whatever process.  The role
    needs the right to create the schema, or, when it exists, to create in it.

    Raises InvalidValue for the name, InvalidDsn, StoreUnavailable when no connection can be made,
    SchemaNewer, and MigrationFailed for all that the server says no to.
    """
    # Alembic and SQLAlchemy are loaded by those who migrate: a worker goes without.
    from sqlalchemy.exc import DBAPIError

    target = Schema(schema)
    engine = _engine(dsn)
    try:
        with _ONE_AT_A_TIME, engine.begin() as connection:
            _upgrade(_config(target, connection=connection), target)
    except DBAPIError as error:
        # SQLAlchemy's text holds the whole script; the server's sentence is what helps.
        cause = error.orig
        raise MigrationFailed(target, _reason(cause), getattr(cause, "sqlstate", None)) from cause
    finally:
        engine.dispose()


def migrate_sql(schema: str = DEFAULT) -> str:
    """The SQL that makes the schema where nothing is yet, as one transaction for psql.

    Raises InvalidValue for the name.
    """
    target = Schema(schema)
    output = StringIO()
    with _ONE_AT_A_TIME:
        _upgrade(_config(target, output=output), target, offline=True)
    return output.getvalue()


def _engine(dsn: str) -> Engine:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    def opened() -> psycopg.Connection[Any]:
        connection = connect(dsn)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.read_only = False
        return connection

    return create_engine(
        "postgresql+psycopg://", creator=opened, poolclass=NullPool, use_native_hstore=False
    )


def _config(schema: Schema, output: StringIO | None = None, **attributes: Any) -> Config:
    from alembic.config import Config

    attributes |= {"schema": schema.name, "quoted_schema": schema.quoted}
    config = Config(output_buffer=output, attributes=attributes)
    folder = Path(migrations.__file__).parent
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def _upgrade(config: Config, schema: Schema, *, offline: bool = False) -> None:
    from alembic import command
    from alembic.script.revision import ResolutionError
    from alembic.util import CommandError

    try:
        command.upgrade(config, "head", sql=offline)
    except CommandError as error:
        unknown = error.__cause__
        if isinstance(unknown, ResolutionError):
            raise SchemaNewer(schema, (str(unknown.argument),)) from error
        raise


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, psycopg.Error) and cause.diag.message_primary:
        return cause.diag.message_primary
    return str(cause).strip().rstrip(".")
