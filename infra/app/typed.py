"""The faces of a job type that type checkers see: the handler's own arguments, and the options.

``resize.enqueue(session, 1, b="x")`` is checked against the handler's signature.  Options stand
beside arguments given by position, ``resize.enqueue(session, 1, "x", queue="slow")``, for handlers
of up to three arguments; ``resize.options(queue="slow").enqueue(session, 1, b="x")`` always works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

from ..caller_ports import Autocommit, Receipt
from .options import ENQUEUE_OPTIONS, EnqueueOptions, ItemOptions, ManyOptions, check_known
from .registry import JobType

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    SyncCaller: TypeAlias = Session | scoped_session[Any] | Connection | psycopg.Connection[Any]
    AsyncCaller: TypeAlias = (
        AsyncSession | async_scoped_session[Any] | AsyncConnection | psycopg.AsyncConnection[Any]
    )
    SyncProducer: TypeAlias = SyncCaller | Autocommit[SyncCaller]
    AsyncProducer: TypeAlias = AsyncCaller | Autocommit[AsyncCaller]

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", contravariant=True)
B = TypeVar("B", contravariant=True)
C = TypeVar("C", contravariant=True)


class Takes0(Protocol):
    """A job type that can be given no argument."""

    def check(self) -> None:
        """See ``SingleJob.check``."""
        ...


class Takes1(Protocol[A]):
    """A job type that can be given one argument by position."""

    def check(self, a: A, /) -> None:
        """See ``SingleJob.check``."""
        ...


class Takes2(Protocol[A, B]):
    """A job type that can be given two arguments by position."""

    def check(self, a: A, b: B, /) -> None:
        """See ``SingleJob.check``."""
        ...


class Takes3(Protocol[A, B, C]):
    """A job type that can be given three arguments by position."""

    def check(self, a: A, b: B, c: C, /) -> None:
        """See ``SingleJob.check``."""
        ...


class Prepared(Generic[P]):
    """A job type with the options of an enqueue chosen."""

    def __init__(self, job: JobType, options: Mapping[str, object]) -> None:
        self._job = job
        self._options = options

    @overload
    def enqueue(self, caller: SyncProducer, /, *args: P.args, **kwargs: P.kwargs) -> Receipt: ...
    @overload
    def enqueue(
        self, caller: AsyncProducer, /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[Receipt]: ...
    def enqueue(self, caller: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Write the job in the caller's transaction; see ``SingleJob.enqueue``."""
        return self._job.submit_one(caller, (self._job.order(args, kwargs, self._options),))


class SingleJob(JobType, Generic[P]):
    """A job type whose every enqueue is a job of its own."""

    def check(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Raise InvalidValue where an enqueue would, and write nothing."""
        self.order(args, kwargs, {})

    def options(self, **options: Unpack[EnqueueOptions]) -> Prepared[P]:
        """Choose options first, so that every argument may be given by name."""
        check_known(options, ENQUEUE_OPTIONS)
        return Prepared(self, options)

    @overload
    def enqueue(self, caller: SyncProducer, /, *args: P.args, **kwargs: P.kwargs) -> Receipt: ...
    @overload
    def enqueue(
        self, caller: AsyncProducer, /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[Receipt]: ...
    @overload
    def enqueue(
        self: Takes0, caller: SyncProducer, /, **options: Unpack[EnqueueOptions]
    ) -> Receipt: ...
    @overload
    def enqueue(
        self: Takes0, caller: AsyncProducer, /, **options: Unpack[EnqueueOptions]
    ) -> Awaitable[Receipt]: ...
    @overload
    def enqueue(
        self: Takes1[A], caller: SyncProducer, a: A, /, **options: Unpack[EnqueueOptions]
    ) -> Receipt: ...
    @overload
    def enqueue(
        self: Takes1[A], caller: AsyncProducer, a: A, /, **options: Unpack[EnqueueOptions]
    ) -> Awaitable[Receipt]: ...
    @overload
    def enqueue(
        self: Takes2[A, B], caller: SyncProducer, a: A, b: B, /, **options: Unpack[EnqueueOptions]
    ) -> Receipt: ...
    @overload
    def enqueue(
        self: Takes2[A, B], caller: AsyncProducer, a: A, b: B, /, **options: Unpack[EnqueueOptions]
    ) -> Awaitable[Receipt]: ...
    @overload
    def enqueue(
        self: Takes3[A, B, C],
        caller: SyncProducer,
        a: A,
        b: B,
        c: C,
        /,
        **options: Unpack[EnqueueOptions],
    ) -> Receipt: ...
    @overload
    def enqueue(
        self: Takes3[A, B, C],
        caller: AsyncProducer,
        a: A,
        b: B,
        c: C,
        /,
        **options: Unpack[EnqueueOptions],
    ) -> Awaitable[Receipt]: ...
    def enqueue(self, caller: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Write a job in the caller's transaction; it is there when that commits.

        With an Autocommit it is there when this returns.

        Arguments and options (see EnqueueOptions) are checked before anything is written: raises
        InvalidValue with the path of what was refused, NoTransaction when the caller has none.
        Raises UniqueKeyTaken and IdempotencyConflict for keys, and then too nothing is written and
        the transaction goes on.  An asynchronous caller awaits the receipt.
        """
        return self.submit_one(caller, self.one(args, kwargs))

    @overload
    def enqueue_many(
        self, caller: SyncProducer, many: Iterable[Any], /, **options: Unpack[ManyOptions]
    ) -> tuple[Receipt, ...]: ...
    @overload
    def enqueue_many(
        self, caller: AsyncProducer, many: Iterable[Any], /, **options: Unpack[ManyOptions]
    ) -> Awaitable[tuple[Receipt, ...]]: ...
    def enqueue_many(self, caller: Any, many: Iterable[Any], /, **options: Any) -> Any:
        """Write many jobs at once, with the same options; receipts come in their order.

        Each is the one argument, or a tuple of the arguments when the handler takes several.  All
        are checked before the first is written, and when a key of one is refused none is written.
        """
        return self.submit(caller, self.orders(many, options))


class GroupedJob(JobType, Generic[T]):
    """A job type whose items with one key join into one job."""

    def check(self, item: T, /) -> None:
        """Raise InvalidValue where an enqueue would, and write nothing."""
        self.order((item,), {}, {"group_key": "-"})

    @overload
    def enqueue(
        self, caller: SyncProducer, item: T, /, *, group_key: str, **options: Unpack[ItemOptions]
    ) -> Receipt: ...
    @overload
    def enqueue(
        self, caller: AsyncProducer, item: T, /, *, group_key: str, **options: Unpack[ItemOptions]
    ) -> Awaitable[Receipt]: ...
    def enqueue(self, caller: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Write an item to the inbox in the caller's transaction; see ``SingleJob.enqueue``.

        Items with one ``group_key``, of one queue, join in order of arrival.  The receipt has the
        item's number; the id of the job is the worker's to give.
        """
        return self.submit_one(caller, self.one(args, kwargs))

    @overload
    def enqueue_many(
        self,
        caller: SyncProducer,
        many: Iterable[T],
        /,
        *,
        group_key: str | Callable[[T], str],
        **options: Unpack[ItemOptions],
    ) -> tuple[Receipt, ...]: ...
    @overload
    def enqueue_many(
        self,
        caller: AsyncProducer,
        many: Iterable[T],
        /,
        *,
        group_key: str | Callable[[T], str],
        **options: Unpack[ItemOptions],
    ) -> Awaitable[tuple[Receipt, ...]]: ...
    def enqueue_many(self, caller: Any, many: Iterable[Any], /, **options: Any) -> Any:
        """Write many items at once; ``group_key`` is one key, or tells the key of each item."""
        return self.submit(caller, self.orders(many, options))
