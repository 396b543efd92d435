"""Options that many commands share, and how a command finds the user's book."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..app.book import Book

F = TypeVar("F", bound=Callable[..., Any])

dsn_option = click.option(
    "--dsn",
    help="PostgreSQL to use. Prefer LEASEBOOK_DSN when it holds a password: a command line is "
    "visible to others. Without either, an embedded server is started.",
)
schema_option = click.option(
    "--schema",
    envvar="LEASEBOOK_SCHEMA",
    default="leasebook",
    show_default=True,
    help="Schema that holds leasebook's tables.",
)
book_schema_option = click.option(
    "--schema",
    envvar="LEASEBOOK_SCHEMA",
    help="Schema that holds leasebook's tables.  [default: the book's]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def connection_options(function: F) -> F:
    """``--dsn``, ``--schema`` and ``--json``, in this order in the help."""
    return dsn_option(schema_option(json_option(function)))


def book_options(function: F) -> F:
    """The same for commands that load a book, which names its schema itself."""
    return dsn_option(book_schema_option(json_option(function)))


def plain_book(dsn: str | None, schema: str) -> Book:
    """A book without job types: enough to look at a queue."""
    return Book(dsn, schema=schema, notify=False)


def load_book(target: str, dsn: str | None, schema: str | None) -> Book:
    """The user's book, named as ``module:attribute``; the working folder is on the path.

    ``dsn`` and ``schema`` win over what the application gave its book.  Raises click.UsageError
    that says what is wrong with the name.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise click.UsageError(f"{target!r} names no book: write it as module:attribute, app:book.")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise
        raise click.UsageError(
            f"there is no module {module_name!r} in {here} or installed."
        ) from None
    book = getattr(module, attribute, None)
    if not isinstance(book, Book):
        found = "nothing" if book is None else f"a {type(book).__name__}"
        raise click.UsageError(f"{module_name}.{attribute} is {found}, not a Book.")
    if dsn is not None or schema is not None:
        book.configure(dsn=dsn, schema=schema)
    return book
