"""Leases that end without an answer."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.commands import ExpireLease
from ...domain.decide import change
from ...domain.job import Job
from ...domain.log import Change
from ...domain.values import ExpiryCause
from ..ports import Store, Transaction
from .evidence import of_aborts
from .order import go_on


def sweep(store: Store, limit: int) -> tuple[Change, ...]:
    """Expire leases that have ended, of any queue and name.  One worker at a time does it."""
    with store.transaction() as tx:
        if not tx.lead("expiry"):
            return ()
        return expire_all(tx, tx.overdue(limit), ExpiryCause.LEASE_ENDED)


def expire_all(tx: Transaction, jobs: Sequence[Job], cause: ExpiryCause) -> tuple[Change, ...]:
    """Expire the leases of locked jobs; of those that this aborts evidence is kept."""
    changes = [
        change(job, ExpireLease(tx.at, job.lease.token, cause))
        for job in jobs
        if job.lease is not None
    ]
    missed = {id(each) for each in tx.append(changes)} if changes else set[int]()
    ended = tuple(each for each in changes if id(each) not in missed)
    if aborts := of_aborts(ended):
        tx.record(aborts)
    go_on(tx)
    return ended
