"""The book: an application's job types, and the database that their jobs live in.

With ``upkeep`` and ``subjects`` this is the one place in ``infra/app`` that knows PostgreSQL; all
else is given what it needs.  Nothing is imported, connected or started before it is needed.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, Unpack, overload

from ...domain.errors import InvalidValue
from ...domain.job import Group
from ..caller_ports import Autocommit, Order, Receipt
from ..ports import Log, Store, Wakeup
from ..postgres.schema.name import DEFAULT, Schema
from .decorators import GroupDecorator, SingleDecorator, names_in_sight
from .errors import NameTaken, UnknownName
from .notifier import Notifier
from .options import TYPE_OPTIONS, TypeOptions, check_known
from .producer import Receipts, Submit
from .registering import parts_of
from .registry import JobType
from .run import Run
from .subjects import Subjects
from .typed import GroupedJob, SingleJob
from .upkeep import Upkeep
from .where import chosen_dsn
from .writing import Rows

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from ..postgres.server import ServerLease
    from ..worker.hosted import HostedWorker
    from ..worker.hosting import HostedOptions
    from .typed import AsyncProducer, SyncProducer

P = ParamSpec("P")


class Book(Subjects, Upkeep):
    """Job types by name, and where their jobs are kept.

    The database is, in this order: ``dsn`` (what libpq reads: a URI or key=value pairs), the
    environment's ``LEASEBOOK_DSN``, ``LEASEBOOK_HOST``, ``_PORT`` and ``_DATABASE`` with the role
    ``leasebook_worker``, and else a PostgreSQL that is started under the user's data folder.  It
    is looked up when it is first needed.  ``notify=False`` never wakes workers after a commit, so
    that they find jobs by polling.  Raises InvalidValue for an impossible schema name.
    """

    def __init__(
        self, dsn: str | None = None, *, schema: str = DEFAULT, notify: bool = True
    ) -> None:
        self._given = dsn
        self._schema = Schema(schema)
        self._notify = notify
        self._jobs: dict[str, JobType] = {}
        self._lock = threading.RLock()
        self._server: ServerLease | None = None
        self._notifier: Notifier | None = None
        self._accept: Submit | None = None

    @property
    def schema(self) -> str:
        """The plain name of the schema that holds leasebook's tables."""
        return self._schema.name

    @property
    def dsn(self) -> str:
        """The DSN in use.  Starts the embedded server when nobody has named a database.

        Raises InvalidValue for parts of a DSN that make no whole, ServerError when the embedded
        server cannot be had.
        """
        chosen = chosen_dsn(self._given, os.environ)
        if chosen is not None:
            return chosen
        with self._lock:
            if self._server is None:
                from ..postgres.server import embedded_server

                self._server = embedded_server()
            return self._server.dsn

    @property
    def jobs(self) -> Mapping[str, JobType]:
        """The registered job types by name, read-only."""
        return MappingProxyType(self._jobs)

    def configure(self, *, dsn: str | None = None, schema: str | None = None) -> None:
        """Use another database or schema from now on; None leaves it as it is.

        (The command line and tests learn where to work after the module was imported.)
        """
        checked = None if schema is None else Schema(schema)
        with self._lock:
            self.close()
            self._given = self._given if dsn is None else dsn
            self._schema = self._schema if checked is None else checked

    @overload
    def job(self, handler: Callable[Concatenate[Run, P], object], /) -> SingleJob[P]: ...
    @overload
    def job(self, handler: Callable[P, object], /) -> SingleJob[P]: ...
    @overload
    def job(self, /, *, group: Group, **options: Unpack[TypeOptions]) -> GroupDecorator: ...
    @overload
    def job(self, /, *, group: None = None, **options: Unpack[TypeOptions]) -> SingleDecorator: ...
    def job(self, handler: Any = None, /, **options: Any) -> Any:
        """Register a handler: ``@book.job`` or ``@book.job(retry=1, timeout=300)``.

        Options (see TypeOptions): ``name``, the function's own by default; ``queue``, ``priority``
        (0-9, higher first), ``retry`` (a Retry, or a number of retries), ``timeout`` and ``lease``
        in seconds, ``group``, ``on_exhausted`` ("hold" or "drop"), ``on_expired`` ("retry" or
        "abort"), ``label``, and ``executor`` ("thread" or "process") for a ``def`` handler.

        Raises InvalidValue for an option, HandlerRefused for a function that cannot be a handler,
        NameTaken when the name has one.
        """
        check_known(options, TYPE_OPTIONS)
        if handler is not None:
            return self._register(handler, options, names_in_sight(inspect.currentframe()))
        if options.get("group") is None:
            return SingleDecorator(self._register, options)
        return GroupDecorator(self._register, options)

    @overload
    def enqueue(
        self, caller: SyncProducer, name: str, args: object = ..., /, **options: Any
    ) -> Receipt: ...
    @overload
    def enqueue(
        self, caller: AsyncProducer, name: str, args: object = ..., /, **options: Any
    ) -> Awaitable[Receipt]: ...
    def enqueue(self, caller: Any, name: str, args: object = None, /, **options: Any) -> Any:
        """Write a job of a name that is known only at run time, in the caller's transaction.

        ``args`` are JSON values: a dict of the arguments by name, or the one item of a group.
        Options are those of ``JobType.enqueue``.  Raises UnknownName, InvalidValue with the path
        of what was refused, and NoTransaction, all before anything is written.
        """
        job = self.find(name)
        given: object = dict[str, object]() if args is None and job.group is None else args
        return job.submit_one(caller, (job.order_named(given, options),))

    def find(self, name: str) -> JobType:
        """The job type of a name.  Raises UnknownName, which says what was probably meant."""
        job = self._jobs.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if job is None:
            raise UnknownName(str(name), self._jobs)
        return job

    def migrate(self) -> None:
        """Create the schema, or bring it to this release; raises as its ``migrate`` does."""
        from ..postgres.schema.migrate import migrate

        migrate(self.dsn, self.schema)

    def store(self) -> Store:
        """A new store on the book's database; one thread uses one store."""
        from ..postgres.store import PostgresStore

        return PostgresStore(self.dsn, self.schema)

    def log(self) -> Log:
        """A new reader of the log on the book's database."""
        from ..postgres.log import PostgresLog

        return PostgresLog(self.dsn, self.schema)

    def wakeup(self) -> Wakeup:
        """A new bell on the book's database."""
        from ..postgres.wakeup import PostgresWakeup

        return PostgresWakeup(self.dsn, self.schema)

    def engine(self) -> Engine:
        """A new, plain SQLAlchemy engine on the book's database, for examples and small programs.

        Raises InvalidDsn for a DSN that libpq cannot read.
        """
        from ..postgres.dsn import engine_on

        return engine_on(self.dsn)

    def worker(
        self,
        *,
        concurrency: int = 10,
        queues: Sequence[str] = (),
        grace: float = 30.0,
        **options: Unpack[HostedOptions],
    ) -> HostedWorker:
        """A worker inside this program, for as long as ``async with book.worker(...)`` lasts.

        It serves ``queues``, or all of the book; handlers get ``grace`` seconds at its end.  More
        options as of ``leasebook worker``, and ``heartbeat_in``: "process" or "thread".  Raises
        InvalidValue for an option; on entry SchemaIncomplete and StoreUnavailable.
        """
        from ..worker.hosting import hosted

        return hosted(self, concurrency, tuple(queues), grace, options)

    def require_schema(self) -> None:
        """Raise SchemaIncomplete or SchemaNewer unless the database has this release's tables."""
        from ..postgres.dsn import connect
        from ..postgres.schema.check import require_schema

        with connect(self.dsn) as connection:
            require_schema(connection, self._schema)

    def close(self) -> None:
        """Stop ringing and give back the embedded server.  The book can be used again."""
        with self._lock:
            closing = (self._notifier, self._server)
            self._notifier, self._server = None, None
        for each in closing:
            if each is not None:
                each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Book with {len(self._jobs)} job types, schema {self.schema!r}>"

    def _register(
        self, handler: Any, options: Mapping[str, object], localns: Mapping[str, Any]
    ) -> JobType:
        face, defaults, retry = parts_of(handler, options, localns)
        kind = SingleJob[Any] if defaults.group is None else GroupedJob[Any]
        job: JobType = kind(face, defaults, retry, self._submit, self._rows)
        with self._lock:
            taken = self._jobs.get(defaults.name)
            if taken is not None:
                raise NameTaken(defaults.name, taken.face.name)
            self._jobs[defaults.name] = job
        return job

    def _submit(self, caller: object, orders: Sequence[Order], /) -> Receipts | Awaitable[Receipts]:
        if self._accept is None:
            from ..postgres.callers import accept

            self._accept = partial(accept, self._schema)
        receipts = self._accept(caller, orders)
        if isinstance(receipts, tuple):
            self._watch(caller, receipts)
            return receipts
        from ..postgres.lines import synchronous

        # The session of a scope is that of the task which calls; another one may await.
        return self._watched(synchronous(caller), receipts)

    def _rows(self) -> Rows:
        from ..postgres.rows_of_runs import PostgresRows

        return PostgresRows(self._schema)

    async def _watched(self, caller: object, receipts: Awaitable[Receipts]) -> Receipts:
        accepted = await receipts
        self._watch(caller, accepted)
        return accepted

    def _watch(self, caller: object, receipts: Receipts) -> None:
        if not self._notify or not receipts:
            return
        notifier = self._notifier
        if notifier is None:
            with self._lock:
                dsn = self._known_dsn()
                if dsn is None:
                    return
                notifier = self._notifier = self._notifier or self._new_notifier(dsn)
        # All of a call are of one transaction, that of the caller.
        notifier.watch(receipts[0].xid, caller, committed=isinstance(caller, Autocommit))

    def _known_dsn(self) -> str | None:
        """The DSN if there is one.  A session of the user is no reason to start a server."""
        try:
            chosen = chosen_dsn(self._given, os.environ)
        except InvalidValue:
            return None
        return chosen if chosen is not None or self._server is None else self._server.dsn

    def _new_notifier(self, dsn: str) -> Notifier:
        from ..postgres import lines
        from ..postgres.commits import PostgresCommits

        return Notifier(partial(PostgresCommits, dsn, self._schema), lines)
