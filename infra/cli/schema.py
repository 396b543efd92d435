"""``leasebook migrate`` and ``leasebook check-schema``."""

from __future__ import annotations

import click

from ...domain.errors import InvalidValue
from ..postgres.schema.check import check_schema
from ..postgres.schema.migrate import migrate_sql
from ..postgres.schema.name import Schema
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json


@click.command()
@connection_options
@click.option("--sql", is_flag=True, help="Print the SQL and connect to nothing.")
@click.option("--since", metavar="REVISION", help="With --sql: the upgrade from this revision on.")
def migrate(dsn: str | None, schema: str, as_json: bool, sql: bool, since: str | None) -> None:
    """Create or upgrade leasebook's tables."""
    with answering(as_json=as_json):
        if since is not None and not sql:
            raise InvalidValue(
                "since", "--since without --sql", "a database knows its own revision"
            )
        if sql:
            text = migrate_sql(schema, since=since)
            if as_json:
                print_json({"schema": schema, "sql": text})
            else:
                click.echo(text)
            return
        with plain_book(dsn, schema) as book:
            book.migrate()
    if as_json:
        print_json({"schema": schema, "migrated": True})
    else:
        click.echo(f"schema {Schema(schema).quoted} is up to date")


@click.command("check-schema")
@connection_options
def check_schema_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Name everything that is missing from the schema; exit 1 when something is."""
    with answering(as_json=as_json), plain_book(dsn, schema) as book:
        missing = check_schema(book.dsn, Schema(schema))
    if as_json:
        print_json({"schema": schema, "complete": not missing, "missing": missing})
    elif missing:
        click.echo("\n".join(missing))
    else:
        click.echo(f"schema {Schema(schema).quoted} is complete")
    finish(FINDING if missing else 0)
