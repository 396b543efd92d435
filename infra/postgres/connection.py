"""One connection: made when it is first needed, made anew when it was lost, and its errors sorted.

Whatever can go wrong between us and the server is one of three things.  The store is unavailable
(ask again later), the data was refused (never ask again with it), or we have a bug (the psycopg
error itself comes out).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextBinaryLoader, TextLoader

from ..ports import DataRefused, StoreUnavailable
from .dsn import check_dsn
from .pooler import is_pooled, may_prepare
from .schema.name import Schema
from .settings import Settings
from .statements import frame

Params: TypeAlias = Mapping[str, object]
Row: TypeAlias = tuple[Any, ...]

TEXT_CHARS_MAX = 300

#: Class 54 is a limit that the data exceeds, an index entry of 10 kB for example; psycopg files it
#: under OperationalError.
REFUSED = (
    psycopg.IntegrityError,
    psycopg.DataError,
    errors.ProgramLimitExceeded,
    UnicodeEncodeError,
)
#: A standby after a failover, a session that was ended, a right that was taken away.
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
UNAVAILABLE_BY_NAME = (errors.InsufficientPrivilege, errors.FeatureNotSupported)


@lru_cache(maxsize=200)
def text_of(statement: Callable[[Schema], str], schema: Schema) -> str:
    """The text of a statement.  There are few, and each is made of many parts."""
    return statement(schema)


def has_rows(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> bool:
    """Whether an answer has rows.  (``description`` would describe each column for it.)"""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


class Link:
    """A connection to the queue's database.  One thread at a time uses it.

    Autocommit: transactions are begun and ended by the statements themselves.  With ``framed``
    every one of them begins by a frame of ours, whose settings are then the session's, unless a
    pooler shares it out: a dozen statements less for each transaction, and what is one statement
    needs no other.  Raises StoreUnavailable and DataRefused as the ports promise, and InvalidDsn
    when it first connects.
    """

    def __init__(
        self, dsn: str, settings: Settings, application_name: str, *, framed: bool = False
    ) -> None:
        self._dsn = dsn
        self._settings = settings
        self._name = application_name
        self._connection: psycopg.Connection[Row] | None = None
        self._spoiled = False
        self._framed = framed
        self._stands = False

    def connection(self) -> psycopg.Connection[Row]:
        """The connection in use, made now if there is none."""
        with sorted_errors():
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            return self._connection

    def ask(self, statement: str, params: Params) -> list[Row]:
        """The rows of one statement of the transaction that ``say`` has begun."""
        connection = self._unspoiled()
        try:
            with sorted_errors(), connection.cursor(binary=True) as cursor:
                cursor.execute(statement.encode(), params)
                return cursor.fetchall() if has_rows(cursor) else []
        except BaseException:
            # What never reached the server, a NUL for example, would not keep it from committing.
            self._spoiled = True
            raise

    def stream(self, statement: str, params: Params, size: int) -> Generator[Row]:
        """The rows of one statement of the transaction, ``size`` at a time."""
        connection = self._unspoiled()
        with sorted_errors(), connection.cursor("leasebook_rows", binary=True) as cursor:
            cursor.itersize = size
            cursor.execute(statement.encode(), params)
            yield from cursor

    def say(self, statements: str) -> Row | None:
        """Send statements without parameters in one message; the first row of the last answer."""
        connection = self.connection()
        self._spoiled = False
        with sorted_errors(), connection.cursor() as cursor:
            cursor.execute(self._light(statements).encode())
            while cursor.nextset():
                pass
            return cursor.fetchone() if has_rows(cursor) else None

    def once(self, begin: str, statement: str, params: Params) -> list[Row]:
        """Run a short transaction: ``begin`` and the statement in one message, then commit.

        The parameters are written into the text, quoted, because such a message takes none.  Rows
        are read before the commit, while the time zone and the date style are still ours.  Where
        the session's settings are ours the statement is sent alone, with its parameters, and is a
        transaction by itself.
        """
        connection = self.connection()
        self._spoiled = False
        begin = self._light(begin)
        try:
            if self._stands and frame.is_bare(begin):
                return self.ask(statement, params)
            with sorted_errors(), psycopg.ClientCursor(connection) as cursor:
                cursor.execute(f"{begin}{statement}".encode(), params)
                while cursor.nextset():
                    pass
                rows = cursor.fetchall() if has_rows(cursor) else []
            self.commit()
            return rows
        except BaseException:
            self.abandon()
            raise

    @property
    def pooled(self) -> bool:
        """Whether a pooler stands between; connects when there is no connection."""
        connection = self.connection()
        with sorted_errors():
            return self._is_shared(connection)

    def commit(self) -> None:
        """Commit.  Raises StoreUnavailable when the server answers that it rolled back instead."""
        connection = self._unspoiled()
        with sorted_errors():
            answer = connection.execute(b"commit", prepare=False).statusmessage
        if answer != "COMMIT":
            raise StoreUnavailable(f"the server answered the commit with {answer}")

    def abandon(self) -> None:
        """End whatever is open without a trace: roll back, or give the connection up."""
        connection = self._connection
        if connection is None:
            return
        idle = psycopg.pq.TransactionStatus.IDLE
        try:
            if not connection.closed and connection.info.transaction_status != idle:
                connection.execute(b"rollback")
        except psycopg.Error:
            connection.close()
        if connection.closed:
            self._connection = None

    def close(self) -> None:
        """Give the connection back.  The next question makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _light(self, begin: str) -> str:
        """How a transaction begins, without what the session has set."""
        return begin.replace(frame.local(self._settings), "", 1) if self._stands else begin

    def _unspoiled(self) -> psycopg.Connection[Row]:
        """The connection of the transaction, if nothing in it has failed.

        A new connection would be another transaction, or none.
        """
        if self._connection is None or self._connection.closed or self._spoiled:
            raise StoreUnavailable(
                "the transaction has failed already and will not be committed. "
                "Let the first error reach the end of the transaction's block."
            )
        return self._connection

    def _connect(self) -> psycopg.Connection[Row]:
        check_dsn(self._dsn)
        options = connect_options(self._settings, self._name)
        given = conninfo_to_dict(self._dsn)
        connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=self._settings.prepare_after,
            client_encoding="utf8",
            **{name: value for name, value in options.items() if name not in given},
        )
        with sorted_errors():
            self._stands = self._framed and self._stand(connection)
            prepares = self._settings.prepare_after is not None
            if prepares and not may_prepare(pooled=self._is_shared(connection)):
                connection.prepare_threshold = None
        # JSON is carried as text: a document that Python read and wrote again would be another one.
        connection.adapters.register_loader("json", TextLoader)
        connection.adapters.register_loader("json", TextBinaryLoader)
        return connection

    def _is_shared(self, connection: psycopg.Connection[Row]) -> bool:
        """Whether a pooler stands between; a framed session knows without asking again."""
        return not self._stands if self._framed else is_pooled(connection)

    def _stand(self, connection: psycopg.Connection[Row]) -> bool:
        """Frame the session, if it is ours alone; whether it is, by one question for both."""
        statement = frame.standing(self._settings).encode()
        return bool(connection.execute(statement, {"pid": connection.info.backend_pid}).fetchall())


def connect_options(settings: Settings, application_name: str) -> dict[str, Any]:
    """What a connection of ours has where the DSN says nothing: bounds on silence, and a name."""
    silence = settings.silence_seconds
    return {
        "connect_timeout": max(2, round(settings.connect_seconds)),
        "keepalives": 1,
        "keepalives_idle": max(1, round(silence / 2)),
        "keepalives_interval": max(1, round(silence / 6)),
        "keepalives_count": 3,
        "tcp_user_timeout": round(silence * 1000),
        "application_name": application_name,
    }


@contextmanager
def sorted_errors() -> Generator[None]:
    """Turn what the driver raises into StoreUnavailable and DataRefused."""
    try:
        yield
    except REFUSED as error:
        # Not chained: the server's detail quotes the data, and tracebacks end up in logs.
        raise DataRefused(reason(error)) from None
    except (*UNAVAILABLE, *UNAVAILABLE_BY_NAME) as error:
        raise StoreUnavailable(told(error)) from error


def reason(error: Exception) -> str:
    """Why data was refused, in words that hold nothing of it."""
    if not isinstance(error, psycopg.Error):
        return "the text holds a lone surrogate, which is not valid Unicode"
    if error.sqlstate is None:
        return "the text holds a NUL character, or a value is out of range"
    diag = error.diag
    parts: Sequence[str | None] = (diag.constraint_name, diag.column_name, diag.table_name)
    where = next((part for part in parts if part), None)
    text = f"{type(error).__name__} ({error.sqlstate})"
    return text if where is None else f"{text} at {where}"[:TEXT_CHARS_MAX]


def told(error: psycopg.Error) -> str:
    """What keeps the store from answering: the kind of error and its first line."""
    line = next(iter(str(error).splitlines()), "")[:TEXT_CHARS_MAX]
    state = "" if error.sqlstate is None else f" ({error.sqlstate})"
    return f"{type(error).__name__}{state}: {line}"
