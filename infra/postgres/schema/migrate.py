"""Making and upgrading the schema, with Alembic behind a door that needs no alembic.ini."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from .... import migrations
from ....domain.errors import InvalidValue
from ..dsn import connect
from ..pooler import is_pooled
from ..statements import catalog
from .errors import MigrationFailed, MigrationPooled, SchemaNewer
from .name import DEFAULT, Schema

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Engine

HEAD = "head"
#: How often a migrator asks whether the one before it has finished.
POLL_SECONDS = 0.1
#: What an upgrade beside the traffic needs of its session, whatever the role's defaults.
ONLINE = "set search_path = pg_catalog; set statement_timeout = 0; set lock_timeout = 0"

# Alembic keeps the migration that runs in global variables.
_ONE_AT_A_TIME = threading.Lock()


def migrate(dsn: str, schema: str = DEFAULT, *, to: str = HEAD) -> None:
    """Create the schema, or bring it to this release; does nothing when it is there already.

    A new schema is made in one transaction.  One that is in use is upgraded beside the traffic, in
    short transactions and with indexes built concurrently; cut off, it goes on where it was when
    it is run again.  Migrators of one schema wait for each other, in whatever process, with a lock
    of their session: give a DSN of the server itself, not of a pooler that shares sessions.  The
    role needs the right to create the schema, or, when it exists, to create in it.  ``to`` stops
    at an earlier revision.

    Raises InvalidValue for the name, InvalidDsn, StoreUnavailable when no connection can be made,
    MigrationPooled, SchemaNewer, and MigrationFailed for all that the server says no to.
    """
    # Alembic and SQLAlchemy are loaded by those who migrate: a worker goes without.
    from sqlalchemy.exc import DBAPIError

    target = Schema(schema)
    try:
        with _ONE_AT_A_TIME, _only_migrator(dsn, target) as guard:
            _migrate(dsn, target, to, online=_is_there(guard, target))
    except DBAPIError as error:
        # SQLAlchemy's text holds the whole script; the server's sentence is what helps.
        cause = error.orig
        raise MigrationFailed(target, _reason(cause), getattr(cause, "sqlstate", None)) from cause
    except psycopg.Error as error:
        raise MigrationFailed(target, _reason(error), error.sqlstate) from error


def migrate_sql(schema: str = DEFAULT, *, since: str | None = None) -> str:
    """The SQL that makes the schema where nothing is yet, as one transaction for psql.

    With ``since``, a released revision, it is the SQL that upgrades a schema from there beside the
    traffic: several transactions, and indexes built between them.  One that fails for its lock
    time-out is for whoever runs it to run again.

    Raises InvalidValue for the name and the revision.
    """
    target = Schema(schema)
    if since is not None and since not in migrations.REVISIONS:
        known = ", ".join(migrations.REVISIONS)
        raise InvalidValue("since", f"revision {since[:40]!r}", f"the released ones are {known}")
    output = StringIO()
    config = _config(target, output=output, online=since is not None)
    with _ONE_AT_A_TIME:
        _upgrade(config, target, HEAD if since is None else f"{since}:{HEAD}", offline=True)
    return output.getvalue()


@contextmanager
def _only_migrator(dsn: str, schema: Schema) -> Generator[psycopg.Connection[Any]]:
    """Be the only migrator of the schema while the block runs.

    The lock is asked for again and again instead of being waited for: who waits inside a statement
    holds a snapshot, and building an index concurrently waits for every older snapshot.  Two
    migrators would wait for each other.
    """
    with connect(dsn) as guard:
        guard.autocommit = True
        if is_pooled(guard):
            raise MigrationPooled(schema)
        guard.execute(ONLINE)
        number = _lock_number(f"leasebook migrators of {schema.name}")
        ask = f"select pg_catalog.pg_try_advisory_lock({number})".encode()
        while not _first(guard, ask):
            time.sleep(POLL_SECONDS)
        yield guard


def _is_there(guard: psycopg.Connection[Any], schema: Schema) -> bool:
    """Whether a migration has made the schema before, so that somebody may be using it."""
    asked = {"schema": schema.name, "table": migrations.VERSION_TABLE}
    readable = _first(guard, catalog.may_read().encode(), asked)
    return readable is True and _first(guard, catalog.revisions(schema).encode()) is not None


def _first(
    connection: psycopg.Connection[Any], statement: bytes, params: dict[str, str] | None = None
) -> Any:
    row = connection.execute(statement, params).fetchone()
    return None if row is None else row[0]


def _lock_number(text: str) -> int:
    """An advisory lock by its name: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _migrate(dsn: str, schema: Schema, to: str, *, online: bool) -> None:
    engine = _engine(dsn, online=online)
    try:
        with engine.connect() if online else engine.begin() as connection:
            _upgrade(_config(schema, connection=connection, online=online), schema, to)
    finally:
        engine.dispose()


def _engine(dsn: str, *, online: bool) -> Engine:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    def opened() -> psycopg.Connection[Any]:
        connection = connect(dsn)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.read_only = False
        if online:
            connection.execute(ONLINE)
            connection.commit()
        return connection

    return create_engine(
        "postgresql+psycopg://", creator=opened, poolclass=NullPool, use_native_hstore=False
    )


def _config(schema: Schema, output: StringIO | None = None, **attributes: Any) -> Config:
    from alembic.config import Config

    attributes = {
        "schema": schema.name,
        "quoted_schema": schema.quoted,
        "lock_number": _lock_number(f"leasebook migrate {schema.name}"),
        "online": False,
        **attributes,
    }
    config = Config(output_buffer=output, attributes=attributes)
    folder = Path(migrations.__file__).parent
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def _upgrade(config: Config, schema: Schema, to: str, *, offline: bool = False) -> None:
    from alembic import command
    from alembic.script.revision import ResolutionError
    from alembic.util import CommandError

    try:
        command.upgrade(config, to, sql=offline)
    except CommandError as error:
        unknown = error.__cause__
        if isinstance(unknown, ResolutionError):
            raise SchemaNewer(schema, (str(unknown.argument),)) from error
        raise


def _reason(cause: BaseException | None) -> str:
    if isinstance(cause, psycopg.Error) and cause.diag.message_primary:
        return cause.diag.message_primary
    return str(cause).strip().rstrip(".")
