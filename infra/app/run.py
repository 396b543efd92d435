"""What a handler knows of the run it is in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import UUID

from ...domain.commands import Complete, CompleteEffect
from ...domain.errors import EffectRefused
from ...domain.job import Job
from ...domain.values import EffectKind
from .effects import Call, landed
from .errors import NotRunning
from .logs import handler_logger
from .mutations import Mutation
from .results import encode_receipt, encode_result
from .writing import UNSTAMPED, Rows, Writer

if TYPE_CHECKING:
    import structlog

    from .typed import AsyncCaller, SyncCaller

T = TypeVar("T")

#: A snapshot goes nowhere.
NOWHERE = "-"


class Run:
    """One run of one job, made by the worker for the handler.

    ``stopping`` becomes True when the worker was asked to stop, ``lost`` when the lease was lost:
    from then on nothing that this run does or returns is recorded, so a handler that loops should
    look at both now and then.  (An ``async def`` handler is cancelled as well.)
    """

    __slots__ = ("_held", "_log", "_rows", "_writer", "in_progress", "job", "lost", "stopping")

    def __init__(
        self, job: Job, writer: Writer | None = None, rows: Callable[[], Rows] | None = None
    ) -> None:
        self.job = job
        self.lost = False
        self.stopping = False
        self.in_progress: set[str] = set()
        self._writer = writer
        self._rows = rows
        self._held: list[tuple[object, object]] = []
        self._log: structlog.stdlib.BoundLogger | None = None

    @property
    def job_id(self) -> UUID:
        """The public id of the job, a UUIDv7: the same in every run."""
        return self.job.spec.id

    @property
    def name(self) -> str:
        """The registered name of the job type."""
        return self.job.spec.name

    @property
    def queue(self) -> str:
        """The queue that the job stands in."""
        return self.job.spec.queue

    @property
    def attempt(self) -> int:
        """Which counted run this is, from 1; snoozes and releases do not count."""
        return self.job.attempts + 1

    @property
    def start(self) -> int:
        """Which start of the job this is, from 1; every lease counts."""
        return self.job.starts

    @property
    def label(self) -> str | None:
        """The label given at enqueue, or by the job type."""
        return self.job.spec.label

    @property
    def owner(self) -> str | None:
        """Whose job it is, as given at enqueue."""
        return self.job.spec.owner

    @property
    def subject(self) -> str | None:
        """What the job is about, as given at enqueue."""
        return self.job.spec.subject

    @property
    def deadline(self) -> datetime:
        """When the time-out of this run ends, by the database's clock."""
        deadline = self.job.deadline
        assert deadline is not None, "a run has a leased job"
        return deadline

    @property
    def worker(self) -> str:
        """The id of the worker that runs it; a restarted worker has another."""
        lease = self.job.lease
        assert lease is not None, "a run has a leased job"
        return lease.worker

    @property
    def log(self) -> structlog.stdlib.BoundLogger:
        """A logger named ``leasebook.handler`` that carries job id, name and attempt."""
        if self._log is None:
            facts = {"job": str(self.job_id), "name": self.name, "attempt": self.attempt}
            self._log = handler_logger().bind(**facts)
        return self._log

    def effect(self, key: str, *, to: str) -> Call:
        """Something to be done outside, once: see Effect.

        ``key`` names it within the job (240 characters), ``to`` is where it goes (512 bytes).  A
        coroutine says ``async with``, any other handler ``with``; the block begins when that is
        committed, and ends when its end is.  Entering raises StaleLease when the lease was lost and
        EffectRefused for a key that stands for another destination or kind.
        """
        return Call(self, key, to)

    @overload
    def once(
        self, key: str, call: Callable[[], Awaitable[object]], *, to: str
    ) -> Awaitable[Any]: ...
    @overload
    def once(self, key: str, call: Callable[[], object], *, to: str) -> Any: ...
    def once(self, key: str, call: Callable[[], Any], *, to: str) -> Any:
        """The receipt of an effect whose block is ``call``; it is not called when it was done.

        A coroutine awaits it, and ``call`` gives something to await there.
        """
        return self._once(key, call, to) if _in_a_loop() else self._once_here(key, call, to)

    def mutation(self, caller: SyncCaller | AsyncCaller, key: str, *, to: str) -> Mutation:
        """A change in the caller's transaction, made once: its receipt commits together with it.

        ``with`` it, or ``async with`` an asynchronous caller.  The job's row is locked from its
        beginning to the end of the transaction.
        """
        return Mutation(self, caller, key, to)

    def snapshot(self, key: str, value: object) -> Any:
        """Freeze a decision: the JSON value that was first stored under ``key``, in every run.

        A coroutine awaits it.  Raises ResultRefused for what JSON cannot hold, StaleLease and
        EffectRefused.
        """
        receipt = encode_receipt(value)
        kind = EffectKind.SNAPSHOT
        command = CompleteEffect(UNSTAMPED, self.token, key, NOWHERE, kind, receipt)
        self.may_write(key)
        written = self.writer.submit(self.job, command)
        if not _in_a_loop():
            return _stored(self.writer.wait(written), key)

        async def stored() -> Any:
            return _stored(await landed(written), key)

        return stored()

    @overload
    def fence(self, caller: SyncCaller) -> None: ...
    @overload
    def fence(self, caller: AsyncCaller) -> Awaitable[None]: ...
    def fence(self, caller: Any) -> Any:
        """Make sure that this run still has its lease until the caller's transaction ends.

        Nobody can end or renew the lease meanwhile, so keep the transaction short.  Raises
        StaleLease when it is lost already.
        """

        def fenced(job: Job) -> None:
            self.holds(caller)

        return _then(self.rows.hold(caller, self.job, shared=True), fenced)

    @overload
    def complete(self, caller: SyncCaller, result: object = None) -> None: ...
    @overload
    def complete(self, caller: AsyncCaller, result: object = None) -> Awaitable[None]: ...
    def complete(self, caller: Any, result: object = None) -> Any:
        """Be done together with the caller's transaction; ``result`` is the job's.

        What the handler returns afterwards is not kept.  When the transaction rolls back the run
        goes on, and its end is an ordinary one.  Raises StaleLease, ResultRefused, and
        EffectRefused while an effect is in progress.
        """
        for key in self.in_progress:
            seen, remedy = "it is in progress", "Leave its block before the job is completed"
            raise EffectRefused(self.job_id, key, seen, remedy)
        command = Complete(UNSTAMPED, self.token, encode_result(result))

        def completed(job: Job) -> None:
            self.holds(caller)

        return _then(self.rows.write(caller, self.job, command), completed)

    @property
    def token(self) -> int:
        """The lease token of this run: what fences its writes."""
        lease = self.job.lease
        assert lease is not None, "a run has a leased job"
        return lease.token

    @property
    def writer(self) -> Writer:
        """The way through the worker.  Raises NotRunning when there is none."""
        if self._writer is None:
            raise NotRunning(self.job_id, "write an effect of")
        return self._writer

    @property
    def rows(self) -> Rows:
        """The way through a transaction of the handler's.  Raises NotRunning."""
        if self._rows is None:
            raise NotRunning(self.job_id, "lock the row of")
        return self._rows()

    def holds(self, caller: object) -> None:
        """Note that the transaction that ``caller`` has open locks the job's row."""
        if (transaction := self.rows.transaction(caller)) is not None:
            self._held.append((caller, transaction))

    def may_write(self, key: str) -> None:
        """Raise EffectRefused while a transaction of this run's locks the row.

        The worker would wait for the row, and the handler that could let go of it for the worker.
        """
        if self._held:
            open_now = self.rows.transaction
            self._held = [each for each in self._held if open_now(each[0]) is each[1]]
        if self._held:
            seen = "a transaction of this run has locked the job's row"
            raise EffectRefused(self.job_id, key, seen, "Commit or roll back first")

    async def _once(self, key: str, call: Callable[[], Awaitable[object]], to: str) -> Any:
        async with self.effect(key, to=to) as effect:
            if not effect.done:
                effect.complete(await call())
        return effect.receipt

    def _once_here(self, key: str, call: Callable[[], object], to: str) -> Any:
        with self.effect(key, to=to) as effect:
            if not effect.done:
                effect.complete(call())
        return effect.receipt

    def __repr__(self) -> str:
        return f"<Run of {self.name} {self.job_id}, attempt {self.attempt}>"


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _stored(job: Job, key: str) -> Any:
    receipt = next(each.receipt for each in job.effects if each.key == key)
    assert receipt is not None
    return json.loads(receipt)


def _then(found: Job | Awaitable[Job], use: Callable[[Job], T]) -> T | Awaitable[T]:
    return use(found) if isinstance(found, Job) else _awaited(found, use)


async def _awaited(found: Awaitable[Job], use: Callable[[Job], T]) -> T:
    return use(await found)
