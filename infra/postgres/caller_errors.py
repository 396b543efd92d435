"""Whose transaction an enqueue may join, and whose not."""

from __future__ import annotations

from ...domain.errors import LeasebookError

TAKES = (
    "a SQLAlchemy Session, Connection, AsyncSession or AsyncConnection (over psycopg, psycopg2 "
    "or asyncpg), "
    "or a psycopg Connection or AsyncConnection"
)


class NoTransaction(LeasebookError):
    """The caller has no transaction that the job could join, so a rollback could not undo it."""

    code = "no_transaction"

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(f"cannot enqueue without the caller's transaction: {seen}. {remedy}")


class CallerRefused(LeasebookError, TypeError):
    """The caller is nothing that this release can enqueue through."""

    code = "caller_refused"

    def __init__(self, seen: str, remedy: str = f"Give {TAKES}") -> None:
        super().__init__(f"cannot enqueue through {seen}. {remedy}.")
