"""A worker inside another program: it lives as long as a block of that program's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from .worker import Worker


class HostedWorker:
    """``async with book.worker(...) as worker``: jobs run on the loop of the block.

    The worker has connections of its own, and installs no signal handler: it stops when the block
    is left, in the way and time of any worker.  Leaving the block waits for that; cancelling that
    wait stops now, as a second signal does.
    """

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._task: asyncio.Task[bool] | None = None

    @property
    def running(self) -> bool:
        """Whether it works; False before the block, after it, and when it had to give up."""
        return self._task is not None and not self._task.done()

    def stop(self) -> None:
        """Stop early: lease no more and let handlers finish.  Called again: stop now."""
        if self._worker is not None:
            self._worker.stop()

    async def __aenter__(self) -> Self:
        """Report for work.  Raises what ``leasebook worker`` would refuse to start with."""
        worker = self._worker = await asyncio.to_thread(self._make)
        task = self._task = asyncio.create_task(worker.run(), name="leasebook-worker")
        started = asyncio.create_task(worker.started.wait())
        try:
            await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()
        if task.done():
            task.result()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop as any worker does, and wait for it."""
        assert self._task is not None
        self.stop()
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.shield(self._task)
            raise
