"""What went wrong: lost leases, jobs that ran twice at once, writes that came too late, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from attrs import define, frozen

from ..wording import one_line
from .clock import micros
from .facts import Facts, Refused, RunKey
from .runs import Run

#: Events whose text is the error of a run.
FAILING = frozenset({"retry_scheduled", "failed"})

# An apostrophe inside a word quotes nothing.
_QUOTED = re.compile(r"(?<!\w)'[^']*'|\"[^\"]*\"|`[^`]*`")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,})\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@frozen
class Lost:
    """A lease that ended without an answer.

    ``late`` is the write that the run tried after that, and ``again`` when the job was started
    next; None for those that never came.
    """

    run: Run
    late: Refused | None
    again: datetime | None


@frozen
class Duplicate:
    """Two runs of one job at one time: ``first`` went on after its lease was lost.

    They overlapped for ``microseconds``: from the start of the second to the end of whichever ended
    first.  The first ended when its late write was refused; a run that was never heard of again may
    have gone on as well, and is not counted.
    """

    first: Run
    second: Run
    late: Refused
    microseconds: int


@define
class Fingerprint:
    """One kind of error: its text without what differs from run to run.

    ``example`` is a job that had it, the first of them.
    """

    text: str
    count: int
    jobs: int
    first: datetime
    last: datetime
    names: set[str]
    example: UUID


@frozen
class Faults:
    """Everything that went wrong in a window, each list in order of time, errors by their count."""

    lost: tuple[Lost, ...]
    duplicates: tuple[Duplicate, ...]
    refused: tuple[Refused, ...]
    errors: tuple[Fingerprint, ...]

    @property
    def clean(self) -> bool:
        """Whether there is nothing to find."""
        return not (self.lost or self.duplicates or self.refused or self.errors)


def faults(
    runs: Iterable[Run],
    facts: Facts,
    since: datetime | None = None,
    until: datetime | None = None,
    jobs: Iterable[UUID] | None = None,
) -> Faults:
    """The faults of ``runs``, which come job by job, from ``since`` to ``until``, both included.

    A fault belongs to its moment: a lease to when it was lost, a duplicate to when the second run
    began.  Refused writes are those of ``jobs``, of all jobs when that is None.
    """
    late = facts.late_ends()
    lost: list[Lost] = []
    twice: list[Duplicate] = []
    errors: dict[str, Fingerprint] = {}
    seen: dict[str, UUID] = {}
    for of_job in _by_job(runs):
        for index, run in enumerate(of_job):
            refused = late.get((run.job_id, run.token))
            if run.lost and _within(run.ended, since, until):
                again = of_job[index + 1].began if index + 1 < len(of_job) else None
                lost.append(Lost(run, refused, again))
            if refused is not None:
                found = (_duplicate(run, each, refused, late) for each in of_job[index + 1 :])
                twice += (at for at in found if at and _within(at.second.began, since, until))
            if run.end in FAILING and not run.lost and _within(run.ended, since, until):
                _count(run, errors, seen)
    wanted = None if jobs is None else frozenset(jobs)
    return Faults(
        tuple(sorted(lost, key=lambda each: each.run.ended or each.run.began)),
        tuple(sorted(twice, key=lambda each: each.second.began)),
        tuple(
            each
            for each in facts.refused
            if _within(each.at, since, until) and (wanted is None or each.job_id in wanted)
        ),
        tuple(sorted(errors.values(), key=lambda each: (-each.count, each.text))),
    )


def fingerprint(error: str) -> str:
    """The telling line of an error with quoted texts, URLs, uuids and numbers replaced.

    Errors that differ in these only are one kind: ``KeyError: '…' in row <n>``.
    """
    line = _URL.sub("<url>", _QUOTED.sub("'…'", one_line(error)))
    return _NUMBER.sub("<n>", _HEX.sub("<hex>", _UUID.sub("<uuid>", line)))


def _by_job(runs: Iterable[Run]) -> Iterator[Sequence[Run]]:
    held: list[Run] = []
    for run in runs:
        if held and held[0].job_id != run.job_id:
            yield held
            held = []
        held.append(run)
    if held:
        yield held


def _within(at: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    return at is not None and (since is None or at >= since) and (until is None or at <= until)


def _duplicate(
    first: Run, second: Run, refused: Refused, late: Mapping[RunKey, Refused]
) -> Duplicate | None:
    """How long a lost run and a later one of its job were both at it, None when they never were."""
    ends = [micros(refused.at)]
    # A second run that was lost too, and came late as well, ended when it came.
    own = late.get((second.job_id, second.token))
    ended = own.at if own is not None else second.ended
    if ended is not None:
        ends.append(micros(ended))
    overlap = min(ends) - micros(second.began)
    return Duplicate(first, second, refused, overlap) if overlap > 0 else None


def _count(run: Run, errors: dict[str, Fingerprint], seen: dict[str, UUID]) -> None:
    text = fingerprint(run.error or "")
    assert run.ended is not None
    known = errors.get(text)
    if known is None:
        names = {run.name}
        errors[text] = Fingerprint(text, 1, 1, run.ended, run.ended, names, run.job_id)
    else:
        known.count += 1
        # Runs come job by job, so that only the last job has to be known.
        known.jobs += seen[text] != run.job_id
        if run.ended < known.first:
            known.first, known.example = run.ended, run.job_id
        known.last = max(known.last, run.ended)
        known.names.add(run.name)
    seen[text] = run.job_id
