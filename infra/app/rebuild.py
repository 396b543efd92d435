"""Holding the claim table against the log, and mending it, while workers go on.

A chunk is looked at in one snapshot, so what differs there does differ.  A job that does is looked
at again under the lock of its row, and only then mended: nobody can have moved it meanwhile.  No
handler runs because of it: an event is never written, a row only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import sleep
from uuid import UUID

from attrs import frozen

from ...projections.claim import KeptRow, differences, expected
from ...projections.streams import steps
from ..ports import DataRefused
from ..rebuild_ports import Candidate, ClaimTable, Place, RowsBusy

#: Pauses before a row that somebody holds is asked for again.
PAUSE_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
BUSY = "its row is locked by another session"
TAKEN = "another row has its unique key, or is the open group of its key"
NO_BIRTH = "its stream does not begin with its birth"

#: Told after each chunk: events read so far, and about how many there are (0: not known).
Progress = Callable[[int, int], None]


@frozen
class Difference:
    """What was wrong with the row of one job, in words; ``left`` is why it still is, if it is."""

    job_id: UUID
    found: tuple[str, ...]
    left: str | None = None


def verify(table: ClaimTable, progress: Progress | None = None) -> Iterator[Difference]:
    """Every row that is not what its stream gives, and every one that should not be.

    It only reads, in short transactions.
    """
    total, events, after = table.events(), 0, None
    while True:
        chunk = table.chunk(after)
        for each in chunk.candidates:
            if found := differing(each):
                yield Difference(each.job_id, found, _hopeless(each))
        events += chunk.events
        if progress is not None:
            progress(events, max(total, events))
        if (after := chunk.last) is None:
            return


def repair(table: ClaimTable, progress: Progress | None = None) -> Iterator[Difference]:
    """Mend every row that differs; each one that did, and whether it still does.

    Broken off, it goes on where it was: the place moves in the transaction that mends.
    """
    total, place = table.events(), table.place()
    while True:
        chunk = table.chunk(place.last)
        ids = [each.job_id for each in chunk.candidates if differing(each)]
        place = Place(chunk.last, place.events + chunk.events, place.rows + len(ids))
        reached = Place() if chunk.last is None else place
        yield from _mend(table, ids, reached)
        if progress is not None:
            progress(place.events, max(total, place.events))
        if chunk.last is None:
            return


def differing(candidate: Candidate) -> tuple[str, ...]:
    """What is wrong with the row of a job, if anything is."""
    if candidate.unreadable:
        return ("its row cannot be read",)
    life = steps(candidate.stream)
    if candidate.stream and not life:
        return (NO_BIRTH,)
    return differences(life, candidate.kept, awaited=candidate.awaited)


def _hopeless(candidate: Candidate) -> str | None:
    """Why a row cannot be made from the log, if so."""
    return NO_BIRTH if candidate.stream and not steps(candidate.stream) else None


def _mend(table: ClaimTable, ids: Sequence[UUID], reached: Place) -> list[Difference]:
    """Mend these jobs together or, if they cannot be had so, one after another."""
    whole = _tried(table, ids, reached)
    if not isinstance(whole, str):
        return whole
    if len(ids) == 1:
        alone = [Difference(ids[0], (), whole)]
    else:
        alone = [each for job_id in ids for each in _mend_one(table, job_id)]
    _tried(table, (), reached)
    return alone


def _mend_one(table: ClaimTable, job_id: UUID) -> list[Difference]:
    mended = _tried(table, [job_id], None)
    return [Difference(job_id, (), mended)] if isinstance(mended, str) else mended


def _tried(table: ClaimTable, ids: Sequence[UUID], reached: Place | None) -> list[Difference] | str:
    """What was mended, or why nothing was."""
    for pause in (*PAUSE_SECONDS, None):
        try:
            return _mended(table, ids, reached)
        except RowsBusy:
            if pause is None:
                break
            sleep(pause)
        except DataRefused:
            return TAKEN
    return BUSY


def _mended(table: ClaimTable, ids: Sequence[UUID], reached: Place | None) -> list[Difference]:
    with table.mending(ids) as mending:
        done: list[Difference] = []
        rows: list[KeptRow] = []
        gone: list[UUID] = []
        for each in mending.candidates():
            found, left = differing(each), _hopeless(each)
            if not found:
                continue
            done.append(Difference(each.job_id, found, left))
            if left is not None:
                continue
            life = steps(each.stream)
            row = expected(life, awaited=each.awaited) if life else None
            if row is None:
                gone.append(each.job_id)
            else:
                rows.append(row)
            mending.record(each.job_id, found)
        mending.drop(gone)
        mending.put(rows)
        if reached is not None:
            mending.reached(reached)
    return done
