"""``replay import``: a bundle in a schema of its own, for who wants to ask in SQL."""

from __future__ import annotations

from pathlib import Path

import click

from ....projections.wording import count
from ...bundle.reader import BundleHistory
from ...postgres.restoring import restore
from ..options import connection_options, plain_book
from ..output import answering, finish, print_json


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@connection_options
def import_command(file: Path, dsn: str | None, schema: str, as_json: bool) -> None:
    """Write the history in FILE into a schema that is not in use, to be asked in SQL.

    It gets no claim table, so that no worker ever runs its jobs again.
    """
    with (
        answering(as_json=as_json),
        BundleHistory(file) as bundle,
        plain_book(dsn, schema) as book,
    ):
        until = bundle.now()
        done = restore(book.dsn, book.schema, bundle.events(until), bundle.audit(until))
    if as_json:
        print_json({"schema": schema, "events": done.events, "audit": done.audit})
    else:
        told = f"{count(done.events, 'event')} and {count(done.audit, 'audit line')}"
        click.echo(f"schema {schema}: {told}; ask it with --schema {schema}")
    finish(0)
