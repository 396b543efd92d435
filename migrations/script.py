"""How a migration runs SQL: as it stands in the file, in one go, with or without a database.

Files are not split into statements, because function bodies hold semicolons, and nothing in them
is a parameter: a `%` or a `:` is a character like any other.
"""

from __future__ import annotations

from importlib import resources

from alembic.runtime.migration import MigrationContext


def run_file(context: MigrationContext, name: str) -> None:
    """Run `versions/<name>`, with @schema@ standing for the quoted name of the schema."""
    file = resources.files("leasebook.migrations") / "versions" / name
    run(context, file.read_text("utf-8").replace("@schema@", quoted_schema(context)))


def run(context: MigrationContext, script: str) -> None:
    """Run one or more statements, each ended by a semicolon; offline, write them out."""
    if context.as_sql:
        context.impl.static_output(script.strip())
        return
    connection = context.connection
    assert connection is not None
    # Without parameters psycopg sends the text unchanged, and the server takes many statements.
    connection.exec_driver_sql(script, execution_options={"no_parameters": True})


def quoted_schema(context: MigrationContext) -> str:
    """The schema as it is written in SQL."""
    config = context.config
    assert config is not None
    quoted = config.attributes["quoted_schema"]
    assert isinstance(quoted, str)
    return quoted
