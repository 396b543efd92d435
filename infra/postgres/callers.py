"""Whose transaction an enqueue joins: every kind of caller, and one round trip for each.

Enqueue never opens, commits or rolls back anything: the job is there when the caller's own
transaction commits, and was never there when it does not.  Only an Autocommit has none: there an
enqueue is one by itself.  Errors of PostgreSQL reach the caller as its own driver raises them, but
for those of a schema that was not migrated.

A Session bound to several engines is asked for its default connection.  When leasebook's tables
are behind another bind, give that one: ``session.connection(bind_arguments={"mapper": Page})``.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from ..caller_ports import Autocommit, Order, Receipt
from .accept import Asking, Question, Row, accepting
from .caller_errors import CallerRefused, NoTransaction, naming_what_is_missing
from .connection import has_rows
from .lines import is_async_psycopg, is_over, is_psycopg
from .parameters import DRIVERS, for_driver
from .schema.name import Schema

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import Session, scoped_session

Receipts = tuple[Receipt, ...]
T = TypeVar("T")
L = TypeVar("L")

BEGIN = (
    "Open one, as in `with Session(engine) as session, session.begin():`, and give the session, "
    "so that the job stands or falls with what else is written."
)
#: One for each psycopg connection on which enqueues commit by themselves.
_LOCKS: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
AUTOCOMMIT = (
    "its connection commits by itself",
    "Take it out of AUTOCOMMIT, or open a transaction; psycopg: `with connection.transaction():`. "
    "Where nothing else is written with the job: `enqueue(Autocommit(connection), ...)`.",
)


def accept(
    schema: Schema, caller: object, orders: Sequence[Order]
) -> Receipts | Awaitable[Receipts]:
    """Accept orders in the caller's transaction; asynchronous callers get something to await.

    Raises NoTransaction when there is no transaction to join and CallerRefused for anything that
    is no caller, or no Autocommit, both before a statement is sent; SchemaIncomplete where the
    tables are not there.
    """
    return _named(schema, caller, accepting(schema, orders, alone=_is_alone(caller)))


def carry(schema: Schema, caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    """Ask ``questions`` in the caller's transaction; what they return, to be awaited by some.

    Raises as ``accept`` does.
    """
    if _is_alone(caller):
        raise CallerRefused("an Autocommit, which only enqueues", "Give its connection")
    return _named(schema, caller, questions)


def _named(schema: Schema, caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    with naming_what_is_missing(schema):
        answer = _carry(caller, questions)
    return _awaited(schema, answer) if isawaitable(answer) else answer


async def _awaited(schema: Schema, answer: Awaitable[T]) -> T:
    with naming_what_is_missing(schema):
        return await answer


def _carry(caller: object, questions: Asking[T]) -> T | Awaitable[T]:
    if alone := _is_alone(caller):
        caller = caller.connection
    if is_psycopg(caller):
        return _psycopg(caller, questions, alone)
    if is_async_psycopg(caller):
        return _async_psycopg(caller, questions, alone)
    # A caller that knows SQLAlchemy has loaded it; nobody else needs it.
    if type(caller).__module__.partition(".")[0] == "psycopg" or not _knows_sqlalchemy():
        raise _no_caller(caller)
    return _sqlalchemy(caller, questions, alone)


def _sqlalchemy(caller: object, questions: Asking[T], alone: bool) -> T | Awaitable[T]:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    match caller:
        case Session() | scoped_session():
            return _session(caller, questions, alone)
        case Connection():
            return _connection(caller, questions, alone)
        case AsyncSession():
            return _async_session(caller, questions, alone)
        case async_scoped_session():
            return _async_session(caller(), questions, alone)
        case AsyncConnection():
            return _async_connection(caller, questions, alone)
        case _:
            raise _no_caller(caller)


def _is_alone(caller: object) -> TypeGuard[Autocommit[Any]]:
    return isinstance(caller, Autocommit)


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


def _session(caller: Session | scoped_session[Session], questions: Asking[T], alone: bool) -> T:
    return _connection(caller.connection(), questions, alone)


async def _async_session(caller: AsyncSession, questions: Asking[T], alone: bool) -> T:
    return await caller.run_sync(_session, questions, alone)


async def _async_connection(caller: AsyncConnection, questions: Asking[T], alone: bool) -> T:
    return await caller.run_sync(_connection, questions, alone)


def _connection(caller: Connection, questions: Asking[T], alone: bool) -> T:
    if caller.dialect.name != "postgresql":
        raise CallerRefused(f"a connection to {caller.dialect.name}", "Connect to PostgreSQL")
    driver = caller.dialect.driver
    if driver not in DRIVERS:
        raise CallerRefused(
            f"the driver {driver}",
            "Make the engine with postgresql+psycopg://, +psycopg2:// or +asyncpg://",
        )
    pooled = caller.connection
    # SQLAlchemy's own face of the connection: asyncpg itself knows no such attribute.
    by_itself: bool = pooled.dbapi_connection.autocommit  # type: ignore[union-attr]
    _check_mode(by_itself and is_over(pooled.driver_connection), alone)

    def ask(question: Question) -> Sequence[Row]:
        # A cursor of the server could not be declared for a statement that writes.
        statement, parameters = for_driver(driver, *question)
        result = caller.exec_driver_sql(
            statement, parameters, execution_options={"stream_results": False}
        )
        return result.all() if result.returns_rows else ()

    return answered(questions, ask)


def _check_mode(commits_each: bool, alone: bool) -> None:
    """Whether each statement would commit by itself is what the caller must know.

    Raises CallerRefused for an Autocommit where it would not, NoTransaction for others where it
    would.
    """
    if alone and not commits_each:
        raise CallerRefused(
            "an Autocommit of a connection that is in a transaction, or begins one by itself",
            "Give the connection itself, and commit; or one in autocommit mode",
        )
    if commits_each and not alone:
        raise NoTransaction(*AUTOCOMMIT)


def _commits_each(caller: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return caller.autocommit and is_over(caller)


def _is_piped(caller: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return caller.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF


def answered(questions: Asking[T], ask: Callable[[Question], Sequence[Row]]) -> T:
    """Ask one question after the other; what goes wrong is told to who asks."""
    try:
        question = next(questions)
        while True:
            try:
                rows = ask(question)
            except BaseException as error:
                question = questions.throw(error)
            else:
                question = questions.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _psycopg(caller: psycopg.Connection[Any], questions: Asking[T], alone: bool) -> T:
    with _lock_of(caller, threading.Lock) if alone else nullcontext():
        if not caller.closed:  # Of such a one the driver has more to say.
            _check_mode(_commits_each(caller), alone)
        try:
            return _asked(caller, questions)
        except BaseException:
            if alone and not is_over(caller):
                caller.close()  # What is written on it later would not be committed.
            raise


async def _async_psycopg(
    caller: psycopg.AsyncConnection[Any], questions: Asking[T], alone: bool
) -> T:
    async with _lock_of(caller, asyncio.Lock) if alone else nullcontext():
        if not caller.closed:
            _check_mode(_commits_each(caller), alone)
        try:
            return await _async_asked(caller, questions)
        except BaseException:
            if alone and not is_over(caller):
                await caller.close()
            raise


def _lock_of(caller: object, new: Callable[[], L]) -> L:
    """Who shares an Autocommit's connection must not commit, or roll back, in another's middle."""
    lock: L | None = _LOCKS.get(caller)
    return _LOCKS.setdefault(caller, new()) if lock is None else lock


def _asked(caller: psycopg.Connection[Any], questions: Asking[T]) -> T:
    with psycopg.Cursor(caller, row_factory=tuple_row) as cursor:

        def ask(question: Question) -> Sequence[Row]:
            statement, parameters = question
            # In a pipeline of the caller's an inner one ends with the answers.
            with caller.pipeline() if _is_piped(caller) else nullcontext():
                cursor.execute(statement.encode(), parameters)
            return cursor.fetchall() if has_rows(cursor) else ()

        return answered(questions, ask)


async def _async_asked(caller: psycopg.AsyncConnection[Any], questions: Asking[T]) -> T:
    """As ``_asked`` and ``answered``, with a connection that is awaited."""
    async with psycopg.AsyncCursor(caller, row_factory=tuple_row) as cursor:
        try:
            statement, parameters = next(questions)
            while True:
                try:
                    async with caller.pipeline() if _is_piped(caller) else nullcontext():
                        await cursor.execute(statement.encode(), parameters)
                    rows = await cursor.fetchall() if has_rows(cursor) else ()
                except GeneratorExit:
                    raise  # Nobody awaits it any more.
                except BaseException as error:
                    statement, parameters = questions.throw(error)
                else:
                    statement, parameters = questions.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer
