"""``leasebook enqueue``: one job from the command line, checked like any other."""

from __future__ import annotations

import json
from typing import Any

import click
import psycopg

from ...domain.errors import InvalidValue
from .options import book_options, load_book
from .output import answering, print_json


@click.command()
@click.argument("target", metavar="MODULE:BOOK")
@click.argument("name")
@click.argument("args", default="{}")
@book_options
@click.option("--queue")
@click.option("--priority", type=int)
@click.option("--delay", type=float, help="Seconds until it may start.")
@click.option("--group-key", help="For job types with a group; ARGS is then the item.")
@click.option("--label")
@click.option("--owner")
@click.option("--subject")
def enqueue(
    target: str,
    name: str,
    args: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Enqueue one job of NAME with ARGS, a JSON object of arguments."""
    given = {key: value for key, value in options.items() if value is not None}
    with answering(), load_book(target, dsn, schema) as book:
        try:
            values = json.loads(args)
        except json.JSONDecodeError as error:
            raise InvalidValue("args", f"no JSON ({error})", "give a JSON object") from None
        with psycopg.connect(book.dsn) as connection:
            receipt = book.enqueue(connection, name, values, **given)
    done = {"id": receipt.id, "item_id": receipt.item_id}
    if as_json:
        print_json(done)
    elif receipt.id is None:
        click.echo(f"item {receipt.item_id}")
    else:
        click.echo(str(receipt.id))
