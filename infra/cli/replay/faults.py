"""``replay faults``: what went wrong; ``replay check``: whether the log keeps its promises."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from uuid import UUID

import click

from ....projections.check import INVARIANTS, check
from ....projections.replay.clock import length, micros
from ....projections.replay.facts import Facts
from ....projections.replay.faults import Duplicate, Faults, Fingerprint, Lost, faults
from ....projections.replay.runs import Run, runs_of
from ....projections.streams import steps
from ....projections.wording import count
from ..output import FINDING, finish
from ..tables import print_table
from .asking import Asked, Replay, common, replaying
from .showing import Record, print_records, refused_record, run_record, stamp

LINES_SHOWN = 20
limit_option = click.option(
    "--limit", default=LINES_SHOWN, show_default=True, type=click.IntRange(0),
    help="Lines of each table.",
)  # fmt: skip


@click.command("faults")
@limit_option
@common()
def faults_command(asked: Asked, limit: int) -> None:
    """Lost leases, jobs that ran twice at once, refused late writes, and errors by fingerprint.

    Exit 1 when there is any.
    """
    with replaying(asked) as replay:
        found = faults_found(replay, replay.runs())
        if asked.as_json:
            print_records(asked, replay, _records(found))
        else:
            _show(found, limit)
    finish(0 if found.clean else FINDING)


def faults_found(replay: Replay, of_window: Iterable[Run]) -> Faults:
    """The faults of the jobs asked about; given a worker, those that it had a part in."""
    asked, facts = replay.choice, replay.facts()
    runs = list(of_window)
    runs += _late_runs(replay, facts, {run.job_id for run in runs})
    found = faults(runs, facts, replay.since, replay.until, {run.job_id for run in runs})
    if asked.worker is None:
        return found
    own = (run for run in runs if asked.of_worker(run.worker))
    of_worker = faults(own, facts, replay.since, replay.until)
    return Faults(
        tuple(each for each in found.lost if asked.of_worker(each.run.worker)),
        tuple(
            each
            for each in found.duplicates
            if asked.of_worker(each.first.worker) or asked.of_worker(each.second.worker)
        ),
        tuple(each for each in found.refused if asked.of_worker(each.worker)),
        of_worker.errors,
    )


def _late_runs(replay: Replay, facts: Facts, seen: Collection[UUID]) -> Iterator[Run]:
    """The runs of jobs that had ended before the window, and one of whose runs came in it."""
    late = {each.job_id for each in facts.refused if replay.choice.within(each.at)}
    for job in sorted(late.difference(seen)):
        if replay.choice.job not in (None, job):
            continue
        life = steps(tuple(replay.history.events(replay.until, job=job)))
        if life and replay.choice.of_job(life[0].after.spec):
            yield from runs_of(life)


def _show(found: Faults, limit: int) -> None:
    if found.clean:
        click.echo("no lease was lost, no job ran twice at once, no write was refused, no error")
        return
    if found.lost:
        lost = [_lost(each) for each in found.lost[:limit]]
        columns = ["job", "name", "worker", "lost", "why", "ran", "started again", "late answer"]
        _table(f"{count(len(found.lost), 'lost lease')}", columns, lost, len(found.lost))
    if found.duplicates:
        twice = [_twice(each) for each in found.duplicates[:limit]]
        columns = ["job", "name", "first", "second", "from", "overlap"]
        number = len(found.duplicates)
        _table(f"{count(number, 'run')} beside another of its job", columns, twice, number)
    if found.refused:
        late = [
            [each.job_id, each.name, each.worker, stamp(each.at), each.answer]
            for each in found.refused[:limit]
        ]
        columns = ["job", "name", "worker", "at", "answer"]
        number = len(found.refused)
        _table(f"{count(number, 'late write')} refused", columns, late, number)
    if found.errors:
        errors = [_error(each) for each in found.errors[:limit]]
        columns = ["runs", "jobs", "names", "first", "last", "example", "error"]
        number = len(found.errors)
        _table(f"{count(number, 'kind')} of errors", columns, errors, number)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], number: int
) -> None:
    click.echo(click.style(title, bold=True))
    if rows:
        print_table(columns, rows)
    if number > len(rows):
        click.echo(f"… and {number - len(rows):,} more; --limit shows more")
    click.echo()


def _lost(lost: Lost) -> list[object]:
    run = lost.run
    again = "no" if lost.again is None else stamp(lost.again)
    late = None if lost.late is None else stamp(lost.late.at)
    return [
        run.job_id, run.name, run.worker, stamp(run.ended), run.why, _ran(run), again, late,
    ]  # fmt: skip


def _ran(run: Run) -> str:
    assert run.ended is not None
    return length(micros(run.ended) - micros(run.began))


def _twice(twice: Duplicate) -> list[object]:
    first, second = twice.first, twice.second
    return [
        first.job_id,
        first.name,
        f"{first.worker} (start {first.start})",
        f"{second.worker} (start {second.start})",
        stamp(second.began),
        length(twice.microseconds),
    ]


def _error(each: Fingerprint) -> list[object]:
    names = ", ".join(sorted(each.names))
    times = [stamp(each.first), stamp(each.last)]
    return [each.count, each.jobs, names, *times, each.example, each.text]


def _records(found: Faults) -> Iterator[Record]:
    for lost in found.lost:
        late = None if lost.late is None else lost.late.at
        yield run_record("lost_lease", lost.run) | {
            "started_again": lost.again,
            "late_answer": late,
        }
    for twice in found.duplicates:
        yield run_record("duplicate_run", twice.second) | {
            "first_worker": twice.first.worker,
            "first_start": twice.first.start,
            "first_answer": twice.late.at,
            "overlap_seconds": twice.microseconds / 1_000_000,
        }
    yield from map(refused_record, found.refused)
    for each in found.errors:
        yield {
            "record": "error",
            "fingerprint": each.text,
            "runs": each.count,
            "jobs": each.jobs,
            "names": sorted(each.names),
            "first": each.first,
            "last": each.last,
            "example": each.example,
        }


@click.command("check")
@limit_option
@common(begins=False, filters=False)
def check_command(asked: Asked, limit: int) -> None:
    """Hold the log up to --to against its invariants; exit 1 when one is broken.

    The claim table is not looked at: `leasebook check` does that.
    """
    with replaying(asked) as replay:
        number = itertools.count()
        log = replay.history.events(replay.until)
        counted = (recorded for recorded, _ in zip(log, number, strict=False))
        violations = list(check(counted))
        if asked.as_json:
            records = (
                {
                    "record": "violation",
                    "invariant": each.invariant,
                    "job": each.job_id,
                    "text": each.text,
                    "versions": [event.version for event in each.events],
                }
                for each in violations
            )
            print_records(asked, replay, records)
        else:
            for each in violations[:limit]:
                click.echo(str(each))
                click.echo(f"  {INVARIANTS[each.invariant]}")
            told = count(len(violations), "violation")
            click.echo(f"{told} in {count(next(number), 'event')} up to {stamp(replay.until)}")
    finish(FINDING if violations else 0)
