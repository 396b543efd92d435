"""Whose transaction an enqueue may join, and whose not; and where it finds no tables."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...domain.errors import LeasebookError
from .schema.errors import SchemaIncomplete
from .schema.name import Schema

#: No such table, schema or column.  Our statements name no other than ours.
MISSING = frozenset({"42P01", "3F000", "42703"})

TAKES = (
    "a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection (over psycopg, psycopg2 "
    "or asyncpg), "
    "or a psycopg Connection or AsyncConnection"
)


class NoTransaction(LeasebookError):
    """The caller has no transaction to join, so a rollback could not undo what is written."""

    code = "no_transaction"

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(f"the caller has no transaction to join: {seen}. {remedy}")


class CallerRefused(LeasebookError, TypeError):
    """The caller is nothing that this release can write through."""

    code = "caller_refused"

    def __init__(self, seen: str, remedy: str = f"Give {TAKES}") -> None:
        super().__init__(f"cannot write through {seen}. {remedy}.")


@contextmanager
def naming_what_is_missing(schema: Schema) -> Generator[None]:
    """Raise SchemaIncomplete where a driver, whichever it is, says that something is not there."""
    try:
        yield
    except Exception as error:
        # SQLAlchemy keeps the error of its driver, and asyncpg's dialect that of asyncpg.
        raised = getattr(error, "orig", None) or error
        said = raised.__cause__ or raised
        code = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
        if code not in MISSING:
            raise
        raise SchemaIncomplete(schema, [str(said).partition("\n")[0]]) from error
