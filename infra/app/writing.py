"""How a running handler's writes reach the stream of its job: through the worker, or by itself."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ...domain.commands import Command, CompleteEffect, ReleaseEffect, StartEffect
from ...domain.job import Job

if TYPE_CHECKING:
    from concurrent.futures import Future

EffectCommand: TypeAlias = StartEffect | CompleteEffect | ReleaseEffect

#: Whoever writes a command stamps it with the database's time.
UNSTAMPED = datetime(1970, 1, 1, tzinfo=UTC)


class Writer(Protocol):
    """Writes to the stream of a running job, under its lease.  Any thread may use it."""

    def submit(self, job: Job, command: EffectCommand) -> Future[Job]:
        """The job once the command is committed, or the error with which it was refused."""
        ...

    def wait(self, written: Future[Job]) -> Job:
        """Wait in a thread of a handler."""
        ...


class Rows(Protocol):
    """The row of a running job in a transaction of its handler's.

    Asynchronous callers get something to await.  Raises StaleLease when the lease is no longer that
    of ``job``, NoTransaction and CallerRefused as an enqueue does.
    """

    def hold(self, caller: object, job: Job, *, shared: bool = False) -> Job | Awaitable[Job]:
        """Lock the row to the end of the transaction, for oneself or ``shared``; the job now."""
        ...

    def write(self, caller: object, job: Job, command: Command) -> Job | Awaitable[Job]:
        """Decide on the job as it is now, and append; the job after.  Raises as ``decide``."""
        ...

    def transaction(self, caller: object) -> object | None:
        """What stands for the transaction that the caller has open; None when it has none."""
        ...
