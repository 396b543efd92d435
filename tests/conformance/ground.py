"""What the conformance suite needs of a store beyond its ports: to enqueue, to look, to wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from threading import Thread
from typing import Any, Protocol
from uuid import UUID

from leasebook.domain.log import Recorded
from leasebook.infra.caller_ports import Order, Receipt
from leasebook.infra.ports import Store
from leasebook.projections.check import KeptRow, check
from leasebook.projections.status import Summary

Accept = Callable[[Sequence[Order]], Sequence[Receipt]]

WAIT_SECONDS_MAX = 30.0


class Ground(Protocol):
    """One database under test, read and written without the store's own code where possible."""

    def store(self) -> Store:
        """A new handle, like a new connection; it is closed after the test."""
        ...

    def caller(self) -> AbstractContextManager[Accept]:
        """A caller's transaction: commits when the block ends, rolls back when it raises."""
        ...

    def put_items(self, orders: Sequence[Order], at: datetime) -> None:
        """Items in the inbox that arrived at ``at``, committed."""
        ...

    def log(self) -> list[Recorded]:
        """The whole log, by job and version."""
        ...

    def rows(self) -> dict[UUID, KeptRow]:
        """The claim table."""
        ...

    def inbox(self) -> int:
        """How many items wait."""
        ...

    def audit(self) -> list[tuple[str, UUID | None, str | None]]:
        """Kind, job and worker of every line of the audit log, in order."""
        ...

    def summaries(self) -> list[Summary]:
        """What is kept of jobs that have ended, in order of id."""
        ...

    def prune(self, older_than: timedelta) -> int:
        """Prune the streams of jobs that ended so long ago; how many there were."""
        ...

    def somebody_waits(self) -> bool:
        """Wait until a statement waits for a lock, at most ``WAIT_SECONDS_MAX``."""
        ...

    def reset(self) -> None:
        """Close every handle and empty every table."""
        ...


def assert_consistent(ground: Ground) -> None:
    """Every invariant that the checker knows, the rows against the fold of the log among them."""
    broken = list(check(ground.log(), ground.rows()))
    assert not broken, "\n".join(str(violation) for violation in broken)


class Blocked:
    """A call that another thread makes, and that must wait for a lock before it is answered."""

    def __init__(self, ground: Ground, call: Callable[[], Any]) -> None:
        self._call = call
        self._answer: Any = None
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert ground.somebody_waits(), f"it did not wait: {self._answer!r} {self._error!r}"

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except BaseException as error:  # Raised again by ``answer``.
            self._error = error

    def answer(self) -> Any:
        """What the call returned once it could go on; what it raised is raised here."""
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive(), "it still waits"
        if self._error is not None:
            raise self._error
        return self._answer
