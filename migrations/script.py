"""How a migration runs SQL: as it stands in the file, in one go, with or without a database.

Files are not split into statements, because function bodies hold semicolons, and nothing in them
is a parameter: a `%` or a `:` is a character like any other.

`run_steps` and `make_index` know whether the schema is in use.  If it is, nothing they do keeps
writers waiting for long: a step that does not get its lock at once lets go, so that those who queue
behind it go on, and tries again later; indexes are built beside the traffic.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib import resources
from typing import Any

import psycopg
from alembic.runtime.migration import MigrationContext
from psycopg import errors

#: How long a step may queue for a lock, since everybody who comes later queues behind it.
BOUND = "lock_timeout = 200"
#: How long a step is tried again before the migration gives up, and how long it waits between.
TRY_SECONDS = 600.0
PAUSE_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
STEP = re.compile(r"^-- step: .*$", re.MULTILINE)


def run_file(context: MigrationContext, name: str) -> None:
    """Run `versions/<name>`, with @schema@ standing for the quoted name of the schema."""
    run(context, _text(context, name))


def run_steps(context: MigrationContext, name: str) -> None:
    """Run `versions/<name>`; where the schema is in use, each `-- step:` by itself.

    Raises LockNotAvailable when a step has not got its lock after ``TRY_SECONDS``.
    """
    text = _text(context, name)
    if not online(context):
        run(context, text)
        return
    with context.autocommit_block():
        for step in STEP.split(text)[1:]:
            if context.as_sql:
                script = f"{BOUND};\n\n{step.strip()}"
                run(context, f"begin;\n\nset local {script}\n\ncommit;")
            else:
                _patiently(_driver(context), step)


def make_index(context: MigrationContext, name: str, statement: str) -> None:
    """Make an index of an existing table; `{concurrently}` in the statement says where that goes.

    An index that is there and whole is left alone.  One that an earlier attempt left half-made is
    dropped and made again.
    """
    text = statement.replace("@schema@", quoted_schema(context))
    if not online(context):
        run(context, re.sub(r"\{concurrently\} *", "", text) + ";")
        return
    making = text.replace("{concurrently}", "concurrently")
    with context.autocommit_block():
        if context.as_sql:
            run(context, making + ";")
            return
        driver = _driver(context)
        whole = _is_whole(context, driver, name)
        if whole is False:
            own = f'{quoted_schema(context)}."{name}"'
            driver.execute(f"drop index concurrently if exists {own}".encode())
        if whole is not True:
            driver.execute(making.encode())


def run(context: MigrationContext, script: str) -> None:
    """Run one or more statements, each ended by a semicolon; offline, write them out."""
    if context.as_sql:
        context.impl.static_output(script.strip())
        return
    connection = context.connection
    assert connection is not None
    # Without parameters psycopg sends the text unchanged, and the server takes many statements.
    connection.exec_driver_sql(script, execution_options={"no_parameters": True})


def online(context: MigrationContext) -> bool:
    """Whether the schema is there already and may be in use."""
    return _attribute(context, "online") is True


def quoted_schema(context: MigrationContext) -> str:
    """The schema as it is written in SQL."""
    quoted = _attribute(context, "quoted_schema")
    assert isinstance(quoted, str)
    return quoted


def _attribute(context: MigrationContext, name: str) -> object:
    config = context.config
    assert config is not None
    return config.attributes[name]


def _text(context: MigrationContext, name: str) -> str:
    file = resources.files("leasebook.migrations") / "versions" / name
    return file.read_text("utf-8").replace("@schema@", quoted_schema(context))


def _driver(context: MigrationContext) -> psycopg.Connection[Any]:
    """The connection itself, which is in autocommit mode, so that each step has its transaction."""
    assert context.connection is not None
    driver: Any = context.connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    assert driver.autocommit
    return driver  # pyright: ignore[reportUnknownVariableType]


def _patiently(driver: psycopg.Connection[Any], step: str) -> None:
    """Run a step in a transaction that waits for a lock only briefly, again and again."""
    give_up = time.monotonic() + TRY_SECONDS
    for pause in _pauses():
        try:
            with driver.transaction():
                driver.execute(f"set local {BOUND}".encode())
                driver.execute(step.encode())
            return
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            if time.monotonic() + pause > give_up:
                raise
            time.sleep(pause)


def _pauses() -> Iterator[float]:
    yield from PAUSE_SECONDS
    while True:
        yield PAUSE_SECONDS[-1]


def _is_whole(context: MigrationContext, driver: psycopg.Connection[Any], name: str) -> bool | None:
    """Whether the index can be used; None when there is none."""
    row = driver.execute(
        "select i.indisvalid and i.indisready from pg_catalog.pg_index as i"
        " join pg_catalog.pg_class as c on c.oid = i.indexrelid"
        " join pg_catalog.pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relname = %s",
        (_attribute(context, "schema"), name),
    ).fetchone()
    return None if row is None else row[0]
