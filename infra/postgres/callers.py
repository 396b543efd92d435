"""Whose transaction an enqueue joins: every kind of caller, and one round trip for each.

Enqueue never opens, commits or rolls back anything: the job is there when the caller's own
transaction commits, and was never there when it does not.  Errors of PostgreSQL reach the caller
as its own driver raises them, but for those of a schema that was not migrated.

A Session bound to several engines is asked for its default connection.  When leasebook's tables
are behind another bind, give that one: ``session.connection(bind_arguments={"mapper": Page})``.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import psycopg
from psycopg.rows import tuple_row

from ..caller_ports import Order, Receipt
from .accept import Asking, Question, Row, accepting
from .caller_errors import CallerRefused, NoTransaction, naming_what_is_missing
from .connection import has_rows
from .parameters import DRIVERS, for_driver
from .schema.name import Schema

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import Session, scoped_session

Receipts = tuple[Receipt, ...]
T = TypeVar("T")

BEGIN = (
    "Open one, as in `with Session(engine) as session, session.begin():`, and give the session, "
    "so that the job stands or falls with what else is written."
)
#: What libpq says of a connection without a transaction, and of one that was closed.
ENDED = (psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.UNKNOWN)
PSYCOPG2_READY = 1
AUTOCOMMIT = (
    "its connection commits by itself",
    "Take it out of AUTOCOMMIT, or open a transaction; psycopg: `with connection.transaction():`.",
)


def accept(
    schema: Schema, caller: object, orders: Sequence[Order]
) -> Receipts | Awaitable[Receipts]:
    """Accept orders in the caller's transaction; asynchronous callers get something to await.

    Raises NoTransaction when there is no transaction to join and CallerRefused for anything that
    is no caller, both before a statement is sent; SchemaIncomplete where the tables are not there.
    """
    return carry(schema, caller, accepting(schema, orders))


def carry(schema: Schema, caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    """Ask ``questions`` in the caller's transaction; what they return, to be awaited by some.

    Raises as ``accept`` does.
    """
    with naming_what_is_missing(schema):
        answer = _carry(caller, questions)
    return _awaited(schema, answer) if isawaitable(answer) else answer


async def _awaited(schema: Schema, answer: Awaitable[T]) -> T:
    with naming_what_is_missing(schema):
        return await answer


def _carry(caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    if _is_psycopg(caller):
        return _psycopg(caller, questions)
    if _is_async_psycopg(caller):
        return _async_psycopg(caller, questions)
    # A caller that knows SQLAlchemy has loaded it; nobody else needs it.
    if type(caller).__module__.partition(".")[0] == "psycopg" or not _knows_sqlalchemy():
        raise _no_caller(caller)
    return _sqlalchemy(caller, questions)


def transaction_of(caller: object) -> object | None:
    """What stands for the transaction that a caller has open, the same object until it ends.

    A psycopg connection stands for whatever transaction it is in.
    """
    if _is_psycopg(caller) or _is_async_psycopg(caller):
        return None if is_over(caller) else caller
    get = getattr(synchronous(caller), "get_transaction", None)
    found: object | None = None if get is None else get()
    return found


def line_of(caller: object) -> object:
    """The driver's own connection of a caller that is in a transaction."""
    if _is_psycopg(caller) or _is_async_psycopg(caller):
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


def _sqlalchemy(caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    match caller:
        case Session() | scoped_session():
            return _session(caller, questions)
        case Connection():
            return _connection(caller, questions)
        case AsyncSession():
            return _async_session(caller, questions)
        case async_scoped_session():
            return _async_session(caller(), questions)
        case AsyncConnection():
            return _async_connection(caller, questions)
        case _:
            raise _no_caller(caller)


def _is_psycopg(caller: object) -> TypeGuard[psycopg.Connection[Any]]:
    return isinstance(caller, psycopg.Connection)


def _is_async_psycopg(caller: object) -> TypeGuard[psycopg.AsyncConnection[Any]]:
    return isinstance(caller, psycopg.AsyncConnection)


def _knows_sqlalchemy() -> bool:
    return "sqlalchemy" in sys.modules


def _no_caller(caller: object) -> Exception:
    """What to say of something that is no caller."""
    name = type(caller).__name__
    if isinstance(caller, str):
        return NoTransaction("a DSN or another text was given", BEGIN)
    if name in ("Engine", "AsyncEngine"):
        return NoTransaction(f"an {name} was given, which has no transaction of its own", BEGIN)
    if name in ("sessionmaker", "async_sessionmaker"):
        return NoTransaction(f"a {name} was given, which makes sessions and is none", BEGIN)
    if name in ("Cursor", "AsyncCursor", "ClientCursor", "AsyncClientCursor"):
        return CallerRefused(f"a {name}", "Give its connection: `cursor.connection`")
    return CallerRefused(f"a {type(caller).__module__}.{name}")


def _session(caller: Session | scoped_session[Session], questions: Asking[T]) -> T:
    return _connection(caller.connection(), questions)


async def _async_session(caller: AsyncSession, questions: Asking[T]) -> T:
    return await caller.run_sync(_session, questions)


async def _async_connection(caller: AsyncConnection, questions: Asking[T]) -> T:
    return await caller.run_sync(_connection, questions)


def _connection(caller: Connection, questions: Asking[T]) -> T:
    if caller.dialect.name != "postgresql":
        raise CallerRefused(f"a connection to {caller.dialect.name}", "Connect to PostgreSQL")
    driver = caller.dialect.driver
    if driver not in DRIVERS:
        raise CallerRefused(
            f"the driver {driver}",
            "Make the engine with postgresql+psycopg://, +psycopg2:// or +asyncpg://",
        )
    # SQLAlchemy's own face of the connection: asyncpg itself knows no such attribute.
    if caller.connection.dbapi_connection.autocommit:  # type: ignore[union-attr]
        raise NoTransaction(*AUTOCOMMIT)

    def ask(question: Question) -> Sequence[Row]:
        # A cursor of the server could not be declared for a statement that writes.
        statement, parameters = for_driver(driver, *question)
        result = caller.exec_driver_sql(
            statement, parameters, execution_options={"stream_results": False}
        )
        return result.all() if result.returns_rows else ()

    try:
        question = next(questions)
        while True:
            question = questions.send(ask(question))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _check_psycopg(caller: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if not caller.autocommit:
        return
    if caller.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
        raise NoTransaction(*AUTOCOMMIT)


def _is_piped(caller: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return caller.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF


def _psycopg(caller: psycopg.Connection[Any], questions: Asking[T]) -> T:
    _check_psycopg(caller)
    with psycopg.Cursor(caller, row_factory=tuple_row) as cursor:
        try:
            question = next(questions)
            while True:
                statement, parameters = question
                # In a pipeline of the caller's an inner one ends with the answers.
                with caller.pipeline() if _is_piped(caller) else nullcontext():
                    cursor.execute(statement.encode(), parameters)
                rows = cursor.fetchall() if has_rows(cursor) else ()
                question = questions.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer


async def _async_psycopg(caller: psycopg.AsyncConnection[Any], questions: Asking[T]) -> T:
    _check_psycopg(caller)
    async with psycopg.AsyncCursor(caller, row_factory=tuple_row) as cursor:
        try:
            question = next(questions)
            while True:
                statement, parameters = question
                async with caller.pipeline() if _is_piped(caller) else nullcontext():
                    await cursor.execute(statement.encode(), parameters)
                rows = await cursor.fetchall() if has_rows(cursor) else ()
                question = questions.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer
