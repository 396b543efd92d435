"""Options that many commands share, and how a command finds the user's book."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import ModuleType
from typing import Any, TypeVar

import click

from ..app.book import Book
from ..app.errors import shown, suggestion
from ..worker.failure import describe

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
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


#: The units of ages on a command line.
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
RELATIVE = re.compile(r"-?(\d+)([smhd])")


def span(value: str) -> timedelta | None:
    """What ``90s``, ``15m``, ``2h`` and ``30d`` stand for; None for other texts."""
    found = RELATIVE.fullmatch(value)
    with suppress(OverflowError):
        return None if found is None else timedelta(**{UNITS[found[2]]: int(found[1])})
    return None


def age(value: str) -> timedelta:
    """How long ago: ``90s``, ``15m``, ``2h``, ``30d``.  Raises click.BadParameter."""
    found = None if value.startswith("-") else span(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no age: write 30d, 12h, 15m or 90s.")
    return found


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
    that says what is wrong with the name, or with the module.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise click.UsageError(
            f"{shown(target)} names no book: write it as module:attribute, for example app:book."
        )
    book = _attribute(_import(module_name), module_name, attribute)
    if dsn is not None or schema is not None:
        book.configure(dsn=dsn, schema=schema)
    return book


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise click.UsageError(
                f"there is no module {shown(name)} in {here} or installed."
            ) from None
        raise _broken(name, error) from error
    except BaseException as error:
        # Whatever the user's module raises, sys.exit included, is an error of that module.
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> click.UsageError:
    return click.UsageError(
        f"the module {shown(name)} cannot be imported: {describe(error)}. "
        f"`python -c 'import {name}'` shows where."
    )


def _attribute(module: ModuleType, module_name: str, attribute: str) -> Book:
    book = getattr(module, attribute, None)
    if isinstance(book, Book):
        return book
    found = "nothing" if book is None else f"a {type(book).__name__}"
    names = [name for name, value in vars(module).items() if isinstance(value, Book)]
    hint = suggestion(attribute, names) if names else "the module has no Book"
    raise click.UsageError(f"{module_name}:{attribute} is {found}, not a Book: {hint}.")
