"""The first step of a tick: append what finished, and what running handlers write.

An entry is decided on the job as its worker last knew it and written by compare-and-set.  What
misses is loaded and decided again: the lease may still live (a heartbeat raised the version), the
very same write may already stand in the log (a commit whose answer was lost), or another run owns
the job by now; then the entry is refused and kept as evidence.

A job may have several entries in one batch: effects of one run, its end, and the end of a run
before it that was given up and comes late.  A batch of the store holds one change of a stream, so
each waits for the one before it, and is then decided on what came of that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from contextlib import suppress
from typing import TypeAlias
from uuid import UUID

from attrs import field, frozen

from ...domain.commands import CompleteEffect, StartEffect
from ...domain.decide import change
from ...domain.errors import EffectRefused, LeasebookError, StaleLease, UnknownEvent
from ...domain.events import Completed, Failed, Released, RetryScheduled
from ...domain.evolve import evolve, fold
from ...domain.job import Job
from ...domain.log import Change, already_recorded
from ...domain.values import ReleaseReason
from ..documents import dumps
from ..ports import Evidence, Transaction
from .answers import Broke, Entry, GaveBack, RanOver, Report, Succeeded, Write, command_for
from .evidence import of_aborts

Pending: TypeAlias = list[tuple[Entry, Job]]

#: How a run ends that has reported.
ENDS = (Completed, Failed, Released, RetryScheduled)
BEGIN = "begin an effect of"
#: A job whose stream moves under every try is left to the next tick after so many.
ROUNDS_MAX = 5


@frozen
class Refusal:
    """A late write: ``entry`` came under a lease that is no longer the job's."""

    entry: Entry
    error: StaleLease

    @property
    def said(self) -> str:
        """What kind of answer or write it is, in one word."""
        entry = self.entry
        return type(entry.command if isinstance(entry, Write) else entry.answer).__name__


@frozen
class Settled:
    """What came of the entries: the changes that hold, those refused, and those to try again.

    ``locked`` are left for later: somebody holds the job's row, a transaction of its hung handler's
    perhaps, and the tick must not wait for that.  ``answers`` are for the handlers that wait for
    their writes, once the tick is committed: the job as it is then, or an error.  ``unrecorded``
    are reports that nobody can settle here: the store holds them in no form, or the job's stream
    speaks of what only a later release knows.  Their leases end by time.
    """

    changes: list[Change] = field(factory=list[Change])
    refused: list[Refusal] = field(factory=list[Refusal])
    again: list[Entry] = field(factory=list[Entry])
    locked: list[Entry] = field(factory=list[Entry])
    unrecorded: list[Report] = field(factory=list[Report])
    answers: list[tuple[Write, Job | LeasebookError]] = field(
        factory=list[tuple[Write, Job | LeasebookError]]
    )


def settle(tx: Transaction, entries: Sequence[Entry], wary: Set[UUID] = frozenset()) -> Settled:
    """Append each entry, in order of job id, and record what had to be refused.

    Rows of the jobs in ``wary`` are not waited for: somebody held one of them the last time.
    """
    settled = Settled()
    # UUIDs compare in Python, their numbers at once.
    ordered = sorted(entries, key=lambda each: each.job.id.int)
    # What a run has written comes before its end, whoever was first to tell.
    ordered.sort(key=lambda each: type(each) is Report)
    doubtful = {each.job.id for each in ordered if _is_given_up(each)}
    if wary:
        doubtful.update(each.job.id for each in ordered if each.job.id in wary)
    if doubtful and (held := tx.locked(sorted(doubtful))):
        settled.locked.extend(each for each in ordered if each.job.id in held)
        ordered = [each for each in ordered if each.job.id not in held]
    over: set[tuple[UUID, int]] = set()
    if ordered and isinstance(ordered[0], Write):
        over.update((each.job.id, each.token) for each in ordered if isinstance(each, Report))
    pending: Pending = []
    for entry in ordered:
        if isinstance(entry, Write) and _too_late(tx, entry, over):
            settled.answers.append((entry, StaleLease(entry.job.id, BEGIN, entry.token, None)))
        else:
            pending.append((entry, entry.job))
    for _ in range(ROUNDS_MAX):
        if not pending:
            break
        pending = _round(tx, pending, settled)
    settled.again.extend(entry for entry, _ in pending)
    if settled.refused:
        tx.record([_evidence(refusal) for refusal in settled.refused])
    return settled


def _is_given_up(entry: Entry) -> bool:
    """Whether its handler may go on, whatever its worker thinks, and hold on to its transaction."""
    if not isinstance(entry, Report) or type(answer := entry.answer) is Succeeded:
        return False
    stopped = isinstance(answer, GaveBack) and answer.reason is ReleaseReason.SHUTDOWN
    return stopped or isinstance(answer, RanOver)


def _too_late(tx: Transaction, write: Write, over: Set[tuple[UUID, int]]) -> bool:
    """Whether an effect is to begin in a run that has ended meanwhile, and has not begun yet."""
    if not isinstance(write.command, StartEffect) or (write.job.id, write.token) not in over:
        return False
    with suppress(LeasebookError):
        asked = change(write.job, command_for(write, tx.at))
        return not already_recorded(asked, tx.stream(write.job.id))
    return False


def _round(tx: Transaction, pending: Pending, settled: Settled) -> Pending:
    entries: dict[int, Entry] = {}
    changes: list[Change] = []
    later: Pending = []
    taken: set[UUID] = set()
    for entry, job in pending:
        if job.id in taken:
            later.append((entry, job))
        elif (asked := _asked(tx, entry, job, settled)) is not None:
            taken.add(job.id)
            entries[id(asked)] = entry
            changes.append(asked)
    missed = tx.append(changes) if changes else ()
    lost = {id(each) for each in missed}
    stood = [each for each in changes if id(each) not in lost]
    settled.changes.extend(stood)
    if aborts := of_aborts(stood):
        tx.record(aborts)
    for asked in stood:
        entry = entries[id(asked)]
        if isinstance(entry, Write):
            settled.answers.append((entry, asked.after))
    if later:
        after = {each.after.id: each.after for each in stood}
        later = [(entry, after.get(job.id, job)) for entry, job in later]
    return _again(tx, missed, entries, settled) + later


def _asked(tx: Transaction, entry: Entry, job: Job, settled: Settled) -> Change | None:
    """The change to append, None when there is nothing to append any more.

    What this worker knows may be old: no write is refused, or taken to be done before, by that.
    """
    said: Job | LeasebookError = job
    for anew in (False, True):
        try:
            known = tx.load([job.id]).get(job.id) if anew else job
            asked = change(known, command_for(entry, tx.at))
        except StaleLease as error:
            _stale(tx, entry, error, settled)
            return None
        except LeasebookError as error:
            if not isinstance(entry, Write):
                raise
            said = error
        else:
            if asked.events or not isinstance(entry, Write):
                return asked
            said = asked.after
    assert isinstance(entry, Write)
    settled.answers.append((entry, said))
    return None


def _again(
    tx: Transaction, missed: Sequence[Change], entries: dict[int, Entry], settled: Settled
) -> Pending:
    """What missed, with its job as it is now; without what needs no second try."""
    if not missed:
        return []
    fresh = _fresh(tx, [each.after.id for each in missed])
    again: Pending = []
    for each in missed:
        entry, found = entries[id(each)], fresh.get(each.after.id)
        if found is None:
            _unknown(tx, entry, settled)
        elif isinstance(entry, Write) and _was_written(tx, entry, each, found):
            settled.answers.append((entry, found))
        else:
            again.append((entry, found))
    return again


def _was_written(tx: Transaction, write: Write, asked: Change, now: Job) -> bool:
    """Whether the log holds this very write: its commit went through, and its answer was lost.

    To begin is of no use any more when the lease was lost since.
    """
    if not already_recorded(asked, tx.stream(now.id)):
        return False
    if not isinstance(write.command, StartEffect):
        return True
    return now.lease is not None and now.lease.token == write.token


def _unknown(tx: Transaction, entry: Entry, settled: Settled) -> None:
    """Nothing can be loaded: it is over and pruned, or cannot be read by this release."""
    with suppress(UnknownEvent):
        if not tx.stream(entry.job.id):
            _stale(tx, entry, StaleLease(entry.job.id, "write to", entry.token, None), settled)
            return
    if isinstance(entry, Write):
        key, seen = entry.command.key, "its job's stream speaks of what only a later release knows"
        refused = EffectRefused(entry.job.id, key, seen, "Upgrade this worker")
        settled.answers.append((entry, refused))
    else:
        settled.unrecorded.append(entry)


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


def _stale(tx: Transaction, entry: Entry, error: StaleLease, settled: Settled) -> None:
    if isinstance(entry, Write):
        settled.answers.append((entry, error))
    elif isinstance(entry.answer, RanOver):
        return  # Somebody else has ended the run, which is all that this report was for.
    elif (asked := _told_before(tx, entry)) is not None:
        settled.changes.append(asked)
        return
    settled.refused.append(Refusal(entry, error))


def _told_before(tx: Transaction, report: Report) -> Change | None:
    """The end of this very run as the log holds it, None when it holds none or another.

    Its commit went through and the answer was lost, or the handler has completed the job itself.
    """
    with suppress(UnknownEvent):
        stream = tx.stream(report.job.id)
        ours = (each for each in stream if getattr(each.event, "lease", None) == report.token)
        end = next((each for each in ours if isinstance(each.event, ENDS)), None)
        if end is None:
            return None
        before = fold(each.event for each in stream if each.version < end.version)
        asked = change(before, command_for(report, tx.at))
        own = isinstance(end.event, Completed) and not isinstance(report.answer, Broke)
        if own or already_recorded(asked, stream):
            return Change(before, (end.event,), evolve(before, end.event))
    return None


def _evidence(refusal: Refusal) -> Evidence:
    entry, error = refusal.entry, refusal.error
    lease = entry.job.lease
    detail: dict[str, object] = {
        "answer": refusal.said,
        "lease": error.token,
        "current": error.current,
        "name": entry.job.spec.name,
    }
    if isinstance(entry, Write):
        detail["effect"] = entry.command.key
        if isinstance(entry.command, CompleteEffect):
            # Whoever finds out what became of the effect has the answer here.
            detail["to"] = entry.command.destination
            detail["receipt"] = json.loads(entry.command.receipt)
    # The worker whose run it was: this one may have another id by now.
    worker = None if lease is None else lease.worker
    return Evidence("late_write_refused", dumps(detail), entry.job.id, worker)
