"""The first step of a tick: append what finished.

A report is decided on the job as it was leased and written by compare-and-set.  What misses is
loaded and decided again: the lease may still live (a heartbeat raised the version), the very same
write may already stand in the log (a commit whose answer was lost), or another run owns the job by
now; then the report is refused and kept as evidence.

A job may have several reports in one batch: that of a run which was given up, come late, beside
that of its next run.  A batch of the store holds one change of a stream, so each waits for the one
before it, and is then decided on what came of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from attrs import field, frozen

from ...domain.decide import change
from ...domain.errors import StaleLease, UnknownEvent
from ...domain.job import Job
from ...domain.log import Change, already_recorded
from ..documents import dumps
from ..ports import Evidence, Transaction
from .answers import RanOver, Report, command_for
from .evidence import of_aborts

#: A job whose stream moves under every try is left to the next tick after so many.
ROUNDS_MAX = 5


@frozen
class Refusal:
    """A late result: ``report`` came under a lease that is no longer the job's."""

    report: Report
    error: StaleLease


@frozen
class Settled:
    """What came of the reports: the changes that hold, those refused, and those to try again.

    ``unrecorded`` are reports that nobody can settle here: the store holds them in no form, or the
    job's stream speaks of what only a later release knows.  Their leases end by time.
    """

    changes: list[Change] = field(factory=list[Change])
    refused: list[Refusal] = field(factory=list[Refusal])
    again: list[Report] = field(factory=list[Report])
    unrecorded: list[Report] = field(factory=list[Report])


def settle(tx: Transaction, reports: Sequence[Report], worker: str) -> Settled:
    """Append the end of each run, in order of job id, and record what had to be refused."""
    settled = Settled()
    # UUIDs compare in Python, their numbers at once.
    ordered = sorted(reports, key=lambda each: each.job.id.int)
    pending = [(report, report.job) for report in ordered]
    for _ in range(ROUNDS_MAX):
        if not pending:
            break
        pending = _round(tx, pending, settled)
    settled.again.extend(report for report, _ in pending)
    if settled.refused:
        tx.record([_evidence(refusal, worker) for refusal in settled.refused])
    return settled


def _round(
    tx: Transaction, pending: Sequence[tuple[Report, Job]], settled: Settled
) -> list[tuple[Report, Job]]:
    reports: dict[int, Report] = {}
    changes: list[Change] = []
    later: list[tuple[Report, Job]] = []
    taken: set[UUID] = set()
    for report, job in pending:
        if job.id in taken:
            later.append((report, job))
            continue
        taken.add(job.id)
        try:
            asked = change(job, command_for(report, tx.at))
        except StaleLease as error:
            _stale(tx, report, error, settled)
            continue
        reports[id(asked)] = report
        changes.append(asked)
    missed = tx.append(changes) if changes else ()
    lost = {id(each) for each in missed}
    stood = [each for each in changes if id(each) not in lost]
    settled.changes.extend(stood)
    if aborts := of_aborts(stood):
        tx.record(aborts)
    if not missed:
        return later
    fresh = _fresh(tx, [each.after.id for each in missed])
    again: list[tuple[Report, Job]] = []
    for each in missed:
        report = reports[id(each)]
        if (found := fresh.get(each.after.id)) is None:
            settled.unrecorded.append(report)
        else:
            again.append((report, found))
    return again + later


def _fresh(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, Job]:
    """Their newest state; without those whose streams a later release has written to."""
    try:
        return tx.load(ids)
    except UnknownEvent:
        found: dict[UUID, Job] = {}
        for job_id in ids:
            with suppress(UnknownEvent):
                found.update(tx.load([job_id]))
        return found


def _stale(tx: Transaction, report: Report, error: StaleLease, settled: Settled) -> None:
    if isinstance(report.answer, RanOver):
        return  # Somebody else has ended the run, which is all that this report was for.
    asked = change(report.job, command_for(report, tx.at))
    with suppress(UnknownEvent):
        if already_recorded(asked, tx.stream(report.job.id)):
            settled.changes.append(asked)
            return
    settled.refused.append(Refusal(report, error))


def _evidence(refusal: Refusal, worker: str) -> Evidence:
    report, error = refusal.report, refusal.error
    detail = {
        "answer": type(report.answer).__name__,
        "lease": error.token,
        "current": error.current,
        "name": report.job.spec.name,
    }
    return Evidence("late_write_refused", dumps(detail), report.job.id, worker)
