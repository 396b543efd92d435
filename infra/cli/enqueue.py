"""``leasebook enqueue``: one job from the command line, checked like any other."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ...domain.errors import InvalidValue
from ...domain.values import OnConflict
from ..app.book import Book
from ..caller_ports import Receipt
from ..postgres.connection import sorted_errors
from ..postgres.dsn import connect
from ..postgres.schema.check import require_schema
from ..postgres.schema.name import Schema
from .options import book_options, load_book
from .output import answering, print_json


@click.command()
@click.argument("target", metavar="MODULE:BOOK")
@click.argument("name")
@click.argument("args", default="{}")
@book_options
@click.option("--queue", help="Another queue than the job type's.")
@click.option("--priority", type=int, help="0 (last) to 9 (first).")
@click.option("--delay", type=float, help="Seconds until it may start.")
@click.option("--group-key", help="For job types with a group; ARGS is then the item.")
@click.option("--label")
@click.option("--owner")
@click.option("--subject")
@click.option("--unique-key", help="One unfinished or held job of the queue has it.")
@click.option(
    "--on-conflict",
    type=click.Choice([each.value for each in OnConflict]),
    help="What to do when the unique key is taken: reject (default), keep or replace.",
)
@click.option("--idempotency-key", help="Names this request for good.")
def enqueue(
    target: str,
    name: str,
    args: str,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Enqueue one job of NAME with ARGS, a JSON object of arguments; - reads it from stdin."""
    given = {key: value for key, value in options.items() if value is not None}
    with answering(as_json=as_json), load_book(target, dsn, schema) as book:
        values = _document(args)
        book.find(name).order_named(values, given)
        receipt = _write(book, name, values, given)
    if as_json:
        print_json({"id": receipt.id, "item_id": receipt.item_id, "created": receipt.created})
    elif receipt.id is None:
        click.echo(f"item {receipt.item_id}")
    else:
        click.echo(str(receipt.id))


def _document(args: str) -> object:
    """The JSON value of an argument.  Raises InvalidValue."""
    try:
        return json.loads(sys.stdin.read() if args == "-" else args)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(
            "args",
            f"a text that is not JSON ({error})",
            """give a JSON object, as in '{"number": 7}'""",
        ) from None


def _write(book: Book, name: str, values: object, options: dict[str, Any]) -> Receipt:
    """One transaction of our own, on a schema that is there."""
    with connect(book.dsn) as connection:
        require_schema(connection, Schema(book.schema))
        with sorted_errors(), connection.transaction():
            receipt: Receipt = book.enqueue(connection, name, values, **options)
        return receipt
