"""What a worker does about the order of keys: who waits, and who goes on.

Whatever ends a job asks here, in a statement after the one that ended it, for those who waited: in
the same statement it would miss who came to wait while it stood at the row's lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from attrs import frozen

from ...domain.commands import CloseGroup, TakeLease, Unblock
from ...domain.decide import change
from ...domain.errors import LeasebookError
from ...domain.job import Job
from ...domain.log import Change
from ...domain.ordering import is_lined, lets_go_on, succeeded
from ...domain.states import State
from ...domain.values import CloseReason
from ..app.logs import Logger
from ..ports import Store, Transaction

if TYPE_CHECKING:
    from ...domain.passing import Passing

STRANDED_JOBS_MAX = 1_000

log = Logger("leasebook.worker")


@frozen
class Lined:
    """Claimed jobs, sorted by what stands before them.

    ``ready`` may start, in claim order; ``waits`` are the changes of those that may not;
    ``passed`` those of whom it cannot be known now.
    """

    ready: Sequence[Job]
    waits: Sequence[Change] = ()
    passed: Sequence[Job] = ()


def line_up(
    tx: Transaction,
    picked: Sequence[Job],
    worker: str,
    keys: Passing[str],
    parents: Passing[UUID],
) -> Lined:
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
    known = [job for job in lined if job.id in found]
    keys.told(_keys(known), _keys(passed), tx.at)
    parents.told(_parents(known), _parents(passed), tx.at)
    return Lined(ready, waits, passed)


def _keys(jobs: Sequence[Job]) -> set[str]:
    return {job.spec.ordering_key for job in jobs if job.spec.ordering_key is not None}


def _parents(jobs: Sequence[Job]) -> set[UUID]:
    """The parents of jobs that have no ordering key beside."""
    return {
        job.spec.after
        for job in jobs
        if job.spec.after is not None and job.spec.ordering_key is None
    }


def taken(job: Job, take: TakeLease) -> Change | None:
    """The change that leases a job, None for one whose row says what cannot be.

    No row can stop a worker; this one is told of and left where it stands.
    """
    try:
        return change(job, take)
    except LeasebookError as error:
        log.error("job cannot be leased", job=str(job.id), name=job.spec.name, error=str(error))
        return None


@frozen
class Freed:
    """Who goes on, and the jobs that have ended and are still waited for: ``owed`` a later try."""

    changes: tuple[Change, ...] = ()
    owed: tuple[Job, ...] = ()


def go_on(tx: Transaction, owed: Sequence[Job] = ()) -> Freed:
    """Let those go on who waited for what has ended in this transaction, or was ``owed`` before.

    Nobody is waited for here: whose row somebody else holds is left for the next time.
    """
    freed: list[Change] = []
    left: list[Job] = []
    ended: Sequence[Job] = (*owed, *tx.waited_for())
    while ended:
        parents = {job.id: job for job in ended}
        waiting = tx.waiting(sorted(job.id for job in ended if lets_go_on(job)), sorted(parents))
        if not waiting.reached:
            left += parents.values()
        changes = [change(job, Unblock(tx.at)) for job in waiting.jobs if _goes_on(job, parents)]
        changes = [each for each in changes if each.events]
        missed = tx.append(changes) if changes else ()
        assert not missed, "who waits is locked before it is let go on"
        freed += changes
        # A job that fails because its parent has may itself be waited for.
        ended = tx.waited_for()
    return Freed(tuple(freed), tuple(left))


def _goes_on(job: Job, ended: Mapping[UUID, Job]) -> bool:
    """One that has failed because its parent had goes on only when that one has succeeded."""
    if job.state is not State.FAILED:
        return True
    parent = None if job.spec.after is None else ended.get(job.spec.after)
    return parent is not None and succeeded(parent)


def free_stranded(store: Store) -> None:
    """Let jobs go on whose blocker has ended without telling them.

    It was ended by an earlier release, or by a worker that died before it could reach them.
    """
    with store.transaction() as tx:
        if not tx.lead("stranded"):
            return
        stranded = tx.stranded(STRANDED_JOBS_MAX)
        changes = [change(job, Unblock(tx.at)) for job in stranded]
        if changes:
            tx.append(changes)
    for job in stranded:
        log.warning(
            "blocked job had nobody to wait for and goes on",
            job=str(job.id),
            name=job.spec.name,
            blocked_by=str(job.blocked_by),
        )
