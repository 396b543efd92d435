"""What a handler changes in this database, once: the receipt commits together with the change."""

from __future__ import annotations

from collections.abc import Awaitable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...domain.commands import CompleteEffect
from ...domain.decide import decide
from ...domain.job import Job
from ...domain.values import EffectKind
from .effects import Effect, End
from .writing import UNSTAMPED

if TYPE_CHECKING:
    from .run import Run


class Mutation(Effect):
    """A change in this database, in a transaction of the handler's that ``caller`` has open."""

    __slots__ = ("_caller",)

    kind = EffectKind.MUTATION

    def __init__(self, run: Run, caller: object, key: str, destination: str) -> None:
        super().__init__(run, key, destination)
        self._caller = caller

    def release(self, reason: str) -> None:
        """Not for a mutation: raises EffectRefused."""
        raise self._refused("a mutation is undone with its transaction", "Roll back instead")

    async def __aenter__(self) -> Self:
        self._enter()
        try:
            held = self._run.rows.hold(self._caller, self._run.job)
            self._take(await held if isinstance(held, Awaitable) else held)
        except BaseException:
            self._left()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            end = self._leave(error)
            if end is not None:
                written = self._run.rows.write(self._caller, self._run.job, end)
                if isinstance(written, Awaitable):
                    await written
                self._recorded()
        finally:
            self._left()

    def __enter__(self) -> Self:
        asynchronous = self._refused("`with` cannot wait for this caller", "Write `async with`")
        if hasattr(type(self._caller), "__aenter__"):
            raise asynchronous
        self._enter()
        try:
            held = self._run.rows.hold(self._caller, self._run.job)
            if isinstance(held, Awaitable):
                raise asynchronous
            self._take(held)
        except BaseException:
            self._left()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            end = self._leave(error)
            if end is not None:
                self._run.rows.write(self._caller, self._run.job, end)
                self._recorded()
        finally:
            self._left()

    def _take(self, job: Job) -> None:
        self._run.holds(self._caller)
        token = self._run.token
        decide(job, CompleteEffect(UNSTAMPED, token, self.key, self.destination, self.kind, "null"))
        self._entered(job)

    def _leave(self, error: BaseException | None) -> End | None:
        """Whoever fails has its transaction rolled back, receipt and all: nothing to record."""
        return super()._leave(error) if error is None else None
