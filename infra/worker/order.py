"""What a worker does about the order of keys: who waits, and who goes on.

Whatever ends a job asks here, in a statement after the one that ended it, for those who waited: in
the same statement it would miss who came to wait while it stood at the row's lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ...domain.commands import CloseGroup, TakeLease, Unblock
from ...domain.decide import change
from ...domain.job import Job
from ...domain.log import Change
from ...domain.ordering import is_lined, lets_go_on, succeeded
from ...domain.passing import Passing
from ...domain.states import State
from ...domain.values import CloseReason
from ..app.logs import get_logger
from ..ports import Store, Transaction

STRANDED_JOBS_MAX = 1_000

log = get_logger("leasebook.worker")


@frozen
class Lined:
    """Claimed jobs, sorted by what stands before them.

    ``ready`` may start, in claim order; ``waits`` are the changes of those that may not;
    ``passed`` those of whom it cannot be known now.
    """

    ready: Sequence[Job]
    waits: Sequence[Change] = ()
    passed: Sequence[Job] = ()


def line_up(tx: Transaction, picked: Sequence[Job], worker: str, keys: Passing) -> Lined:
    """Ask for those with an ordering key or a parent who stands before them."""
    lined = [job for job in picked if is_lined(job)]
    if not lined:
        return Lined(picked)
    found = tx.ahead(lined, keys.settled)
    waits: list[Change] = []
    ready: list[Job] = []
    passed: list[Job] = []
    for job in picked:
        if not is_lined(job):
            ready.append(job)
        elif (ahead := found.get(job.id)) is None:
            passed.append(job)
        elif ahead.late:
            waits.append(change(job, CloseGroup(tx.at, CloseReason.BLOCKED)))
        elif ahead.behind is None and not ahead.parent_failed:
            ready.append(job)
        else:
            take = TakeLease(tx.at, worker, ahead.behind, ahead.parent_failed)
            waits.append(change(job, take))
    refused = {job.spec.ordering_key for job in passed}
    known = {job.spec.ordering_key for job in lined if job.id in found}
    keys.served(key for key in known - refused if key is not None)
    keys.refused((key for key in refused if key is not None), tx.at)
    return Lined(ready, waits, passed)


def go_on(tx: Transaction) -> tuple[Change, ...]:
    """Let those go on who waited for what has ended in this transaction."""
    freed: list[Change] = []
    # A job that fails because its parent has may itself be waited for.
    while ended := tx.waited_for():
        freed += _unblock(tx, ended)
    return tuple(freed)


def _unblock(tx: Transaction, ended: Sequence[Job]) -> list[Change]:
    parents = {job.id: job for job in ended}
    waiting = tx.waiting(sorted(job.id for job in ended if lets_go_on(job)), sorted(parents))
    changes: list[Change] = []
    for job in waiting:
        parent = None if job.spec.after is None else parents.get(job.spec.after)
        if job.state is State.FAILED and (parent is None or not succeeded(parent)):
            continue
        changes.append(change(job, Unblock(tx.at)))
    changes = [each for each in changes if each.events]
    missed = tx.append(changes) if changes else ()
    assert not missed, "who waits is locked before it is let go on"
    return changes


def free_stranded(store: Store) -> None:
    """Let jobs go on whose blocker has no row any more.  There should be none: each is a bug."""
    with store.transaction() as tx:
        if not tx.lead("stranded"):
            return
        stranded = tx.stranded(STRANDED_JOBS_MAX)
        changes = [change(job, Unblock(tx.at)) for job in stranded]
        if changes:
            tx.append(changes)
    for job in stranded:
        log.error(
            "blocked job had nobody to wait for; this is a bug of leasebook or an older release",
            job=str(job.id),
            name=job.spec.name,
            blocked_by=str(job.blocked_by),
        )
