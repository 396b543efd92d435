"""What a handler does outside, behind a receipt: begun on record, then done, rejected or uncertain.

A Call speaks to somebody else's system: its begin is committed before the block runs, its receipt
before the block is left.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ...domain.commands import CompleteEffect, ReleaseEffect, StartEffect
from ...domain.decide import decide
from ...domain.errors import EffectRefused, LeasebookError
from ...domain.job import Job
from ...domain.values import EffectKind, Json
from .errors import EffectUnfinished
from .failures import rejection
from .redaction import reason_text, redact
from .results import encode_receipt
from .writing import UNSTAMPED, EffectCommand

if TYPE_CHECKING:
    from .run import Run

End: TypeAlias = CompleteEffect | ReleaseEffect

NOT_TWICE = "Leave that block first, or give this effect a key of its own"


async def landed(written: Future[Job]) -> Job:
    """Wait for a write in a coroutine.  Who is cancelled meanwhile takes nothing back by that."""
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()

    def tell() -> None:
        if not waiting.done():
            waiting.set_result(None)

    def answered(_: Future[Job]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(tell)

    written.add_done_callback(answered)
    await waiting
    return written.result()


class Effect:
    """One effect of a job.

    ``done`` tells that it was done before, or has just been: then ``receipt`` is what ``complete``
    was given, as its JSON value.  Made by ``Run.effect`` and ``Run.mutation``, for one block.
    """

    __slots__ = ("_before", "_end", "_open", "_receipt", "_run", "destination", "key")

    kind = EffectKind.CALL

    def __init__(self, run: Run, key: str, destination: str) -> None:
        self.key = key
        # It is in every text about the effect.
        self.destination = redact(destination)
        self._run = run
        self._open = False
        self._before = False
        self._receipt: Json | None = None
        self._end: End | None = None

    @property
    def done(self) -> bool:
        """Whether there is a receipt.  Look here first: a block cannot skip itself."""
        return self._receipt is not None

    @property
    def receipt(self) -> Any:
        """The JSON value that the effect was completed with; None while it is not done."""
        return None if self._receipt is None else json.loads(self._receipt)

    def complete(self, result: object = None) -> None:
        """It is done, and ``result`` is its receipt.

        Recorded when the block is left, whatever else goes wrong in it.  On an effect that was
        done before nothing changes, and a warning is logged: the block has done it again.  Raises
        ResultRefused for what JSON cannot hold or is larger than 64 KiB; it is done all the same.
        Raises EffectRefused outside of its block, and when its end was told before.
        """
        if self._before:
            self._run.log.warning("effect done again", effect=self.key, to=self.destination)
            return
        self._may_end("complete")
        self._done("null")
        self._done(encode_receipt(result))

    def release(self, reason: str) -> None:
        """It has certainly not happened, says the handler: it may be begun again.

        Recorded when the block is left.  Raises EffectRefused outside of its block, and when its
        end was told before.
        """
        if self._before:
            raise self._refused("it is done", "Only one in progress can be released")
        self._may_end("release")
        self._end = ReleaseEffect(UNSTAMPED, self._run.token, self.key, reason_text(reason))

    def _done(self, receipt: Json) -> None:
        token, kind = self._run.token, self.kind
        self._end = CompleteEffect(UNSTAMPED, token, self.key, self.destination, kind, receipt)

    def _may_end(self, what: str) -> None:
        if not self._open:
            raise self._refused("it is not in progress", f"Call {what} inside of its block")
        if self._end is not None:
            raise self._refused("its end was told before", "Tell it once")

    def _refused(self, seen: str, remedy: str) -> EffectRefused:
        return EffectRefused(self._run.job_id, self.key, seen, remedy)

    def _enter(self) -> None:
        if self.key in self._run.in_progress:
            raise self._refused("it is in progress in this very run", NOT_TWICE)
        self._run.in_progress.add(self.key)

    def _entered(self, job: Job) -> None:
        known = next((each for each in job.effects if each.key == self.key), None)
        self._receipt = None if known is None else known.receipt
        self._before = self._receipt is not None
        self._open = True

    def _leave(self, error: BaseException | None) -> End | None:
        """What to record at the end of the block.  Raises EffectUnfinished for want of a word."""
        self._open = False
        if self._before or self._end is not None:
            return self._end
        if error is None:
            raise EffectUnfinished(self._run.job_id, self.key, self.destination)
        reason = rejection(error)
        if reason is None:
            return None
        return ReleaseEffect(UNSTAMPED, self._run.token, self.key, reason)

    def _left(self) -> None:
        self._run.in_progress.discard(self.key)

    def _recorded(self) -> None:
        if isinstance(self._end, CompleteEffect):
            self._receipt = self._end.receipt

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key!r} to {self.destination!r}>"


class Call(Effect):
    """An effect outside: ``async with`` it in coroutines, ``with`` it elsewhere."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        self._may_begin()
        self._enter()
        began = self._submit(self._start)
        try:
            self._entered(await landed(began))
        except BaseException:
            self._not_begun(began)
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
                written = self._submit(end)
                if isinstance(error, GeneratorExit):
                    return  # A coroutine that is being closed cannot wait.
                await landed(written)
                self._recorded()
        finally:
            self._left()

    def __enter__(self) -> Self:
        self._may_begin()
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise self._refused("`with` would block the event loop", "Write `async with`")
        self._enter()
        began = self._submit(self._start)
        try:
            self._entered(self._run.writer.wait(began))
        except BaseException:
            self._not_begun_here(began)
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
                self._run.writer.wait(self._submit(end))
                self._recorded()
        finally:
            self._left()

    @property
    def _start(self) -> StartEffect:
        return StartEffect(UNSTAMPED, self._run.token, self.key, self.destination, self.kind)

    def _submit(self, command: EffectCommand) -> Future[Job]:
        return self._run.writer.submit(self._run.job, command)

    def _may_begin(self) -> None:
        self._run.may_write(self.key)
        # Refused before anything is queued: texts that no effect can have.
        decide(self._run.job, self._start)

    def _not_begun(self, began: Future[Job]) -> None:
        """Its block will not run.  Should the begin be on its way, it is taken back."""

        def take_back(written: Future[Job]) -> None:
            if written.exception() is None and self._is_begun(written.result()):
                self._submit(self._undo)

        if not began.cancel():
            began.add_done_callback(take_back)
        self._left()

    def _not_begun_here(self, began: Future[Job]) -> None:
        """The same where a signal interrupts the wait: what follows is the end of the run."""
        writer = self._run.writer
        if not began.cancel():
            with suppress(LeasebookError):
                if self._is_begun(writer.wait(began)):
                    writer.wait(self._submit(self._undo))
        self._left()

    def _is_begun(self, job: Job) -> bool:
        return any(each.key == self.key and each.receipt is None for each in job.effects)

    @property
    def _undo(self) -> ReleaseEffect:
        reason = "it was interrupted before it could begin"
        return ReleaseEffect(UNSTAMPED, self._run.token, self.key, reason)
