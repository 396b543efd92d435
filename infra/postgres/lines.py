"""What a caller's own connection shows of its transaction; the server is not asked."""

from __future__ import annotations

from typing import Any, TypeGuard, cast

import psycopg

#: What libpq says of a connection without a transaction, and of one that was closed.
ENDED = (psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.UNKNOWN)
PSYCOPG2_READY = 1


def transaction_of(caller: object) -> object | None:
    """What stands for the transaction that a caller has open, the same object until it ends.

    A psycopg connection stands for whatever transaction it is in.
    """
    if is_psycopg(caller) or is_async_psycopg(caller):
        return None if is_over(caller) else caller
    get = getattr(synchronous(caller), "get_transaction", None)
    found: object | None = None if get is None else get()
    return found


def line_of(caller: object) -> object:
    """The driver's own connection of a caller that is in a transaction."""
    if is_psycopg(caller) or is_async_psycopg(caller):
        return caller
    found: Any = synchronous(caller).connection
    pooled: Any = found
    if callable(found):  # a Session gives its Connection
        pooled = cast(Any, found()).connection
    line: object = pooled.driver_connection
    return line


def synchronous(caller: Any) -> Any:
    """A Session or a Connection; an asynchronous one is the face of such."""
    if callable(caller):  # a scoped session gives its session
        caller = caller()
    return getattr(caller, "sync_session", getattr(caller, "sync_connection", caller))


def is_over(line: Any) -> bool:
    """Whether no transaction is open on a driver's connection; nobody is asked.

    Any thread may look, whatever the connection is busy with.
    """
    if hasattr(line, "is_in_transaction"):  # asyncpg
        return line.is_closed() or not line.is_in_transaction()
    if hasattr(line, "status"):  # psycopg2, which frees what libpq knows beside other threads
        return bool(line.closed) or line.status == PSYCOPG2_READY
    over: bool = line.info.transaction_status in ENDED
    return over


def is_psycopg(caller: object) -> TypeGuard[psycopg.Connection[Any]]:
    """Whether this is psycopg's own connection."""
    return isinstance(caller, psycopg.Connection)


def is_async_psycopg(caller: object) -> TypeGuard[psycopg.AsyncConnection[Any]]:
    """Whether this is psycopg's own, to be awaited."""
    return isinstance(caller, psycopg.AsyncConnection)
