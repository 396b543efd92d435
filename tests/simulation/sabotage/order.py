"""Broken order of keys: who goes on too early, and who is never let go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch
from uuid import UUID

from leasebook.domain import State
from leasebook.infra.memory import MemoryTransaction, order
from leasebook.infra.memory.session import Session
from leasebook.infra.memory.tables import StoredJob
from leasebook.infra.ports import Waiting
from leasebook.infra.worker import tick
from leasebook.infra.worker.answers import Report
from leasebook.infra.worker.settle import Settled, settle

from .rules import Planted, always, both

Ask = Callable[[MemoryTransaction, Sequence[UUID], Sequence[UUID]], Waiting]


def goes_on_with_the_end() -> Planted:
    """Who waits is looked up as the job ends, and not after it: who comes meanwhile is missed."""
    waiting: Ask = MemoryTransaction.waiting
    early: dict[int, set[UUID]] = {}

    def look_first(tx: Any, reports: Sequence[Report], wary: Any) -> Settled:
        ids = [report.job.id for report in reports]
        early[tx.xid] = {job.id for job in waiting(tx, ids, ids).jobs}
        return settle(tx, reports, wary)

    def known(
        self: MemoryTransaction, blockers: Sequence[UUID], parents: Sequence[UUID]
    ) -> Waiting:
        found = waiting(self, blockers, parents).jobs
        known = [job for job in found if job.id in early.get(self.xid, {job.id})]
        return Waiting(known, reached=True)

    return both(
        patch.object(tick, "settle", look_first),
        patch.object(MemoryTransaction, "waiting", known),
    )


def producers_are_not_waited_for() -> Planted:
    """A worker does not ask whether a producer of the key may still commit a lower number."""
    return patch.object(Session, "is_quiet", always(True))


def one_goes_on() -> Planted:
    """Of several jobs that wait for one that has ended, the first goes on.

    (No invention: it was how the order of keys was first built.)
    """
    waiting: Ask = MemoryTransaction.waiting

    def first(
        self: MemoryTransaction, blockers: Sequence[UUID], parents: Sequence[UUID]
    ) -> Waiting:
        return Waiting(waiting(self, blockers, parents).jobs[:1], reached=True)

    return patch.object(MemoryTransaction, "waiting", first)


def held_jobs_block_nobody() -> Planted:
    """The later jobs of a key do not wait for a held one, whatever that one says of holds."""

    def in_line(row: StoredJob, key: str) -> bool:
        return row.spec.ordering_key == key and not row.state.held

    return patch.object(order, "in_line", in_line)


def failed_parents_are_done() -> Planted:
    """Who comes after a job starts when that one has ended, well or not."""
    honest = order._parent  # pyright: ignore[reportPrivateUsage]

    def _parent(session: Session, after: UUID | None) -> Any:
        found, state = honest(session, after)
        return found, State.DONE if state is State.FAILED else state

    return patch.object(order, "_parent", _parent)
