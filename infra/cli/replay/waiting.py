"""``replay wait``: why jobs started late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import click

from ....domain.log import Recorded
from ....projections.replay.waiting import Cause
from ....projections.replay.waits import Segment, Wait, waits
from ....projections.wording import count
from ..output import finish, print_table
from .asking import Asked, Replay, common, replaying
from .showing import Record, length, print_records, stamp

WAITS_SHOWN = 20


@click.command("wait")
@click.option(
    "--limit", default=WAITS_SHOWN, show_default=True, type=click.IntRange(0),
    help="How many of the longest waits a table shows.",
)  # fmt: skip
@common()
def wait_command(asked: Asked, limit: int) -> None:
    """Why jobs started late: every wait cut into what it was spent on, exact to the microsecond.

    Of starts in the window, and of waits that go on at its end.
    """
    with replaying(asked) as replay:
        wanted, chosen = replay.choice, set[UUID]()
        log, known = _noting(replay, chosen), replay.history.known_from
        found = [
            wait
            for wait in waits(log, replay.facts(), replay.until, known)
            if wait.job_id in chosen
            and wanted.within(wait.started or replay.until)
            and wanted.of_worker(wait.worker)
        ]
        if asked.as_json:
            print_records(asked, replay, map(_record, found))
        else:
            _show(found, limit)
    finish(0)


def _noting(replay: Replay, chosen: set[UUID]) -> Iterator[Recorded]:
    """The events of all jobs, since others are what a job waits for; ``chosen`` gets its ids."""
    for life in replay.lives(chosen=False):
        if replay.choice.of_job(life[0].after.spec):
            chosen.add(life[0].recorded.job_id)
        yield from (step.recorded for step in life)


def _show(found: list[Wait], limit: int) -> None:
    over = sum(wait.started is not None for wait in found)
    going = len(found) - over
    click.echo(f"{count(over, 'start')}, {count(going, 'job')} still waiting")
    if not found:
        return
    whole = sum(wait.microseconds for wait in found)
    rows: list[list[object]] = []
    for cause in Cause:
        spent = [wait.of(cause) for wait in found]
        if total := sum(spent):
            waited = sum(each > 0 for each in spent)
            share = f"{100 * total / whole:.1f} %"
            rows.append([cause.value, waited, length(total), share, length(max(spent))])
    print_table(["waited for", "waits", "together", "share", "longest"], rows)
    if not limit:
        return
    click.echo()
    found.sort(key=lambda wait: -wait.microseconds)
    print_table(
        ["job", "name", "start", "started", "waited", "for"],
        [
            [
                wait.job_id,
                wait.name,
                wait.start,
                stamp(wait.started) or "not yet",
                length(wait.microseconds),
                _told(wait.segments),
            ]
            for wait in found[:limit]
        ],
    )
    if len(found) > limit:
        click.echo(f"these are the {limit:,} longest; --limit shows more")


def _told(segments: Sequence[Segment]) -> str:
    told: list[str] = []
    for each in segments:
        by = "" if each.by is None else f" {each.by}"
        told.append(f"{each.cause.value}{by} {length(each.microseconds)}")
    return ", ".join(told)


def _record(wait: Wait) -> Record:
    return {
        "record": "wait",
        "job": wait.job_id,
        "name": wait.name,
        "queue": wait.queue,
        "start": wait.start,
        "worker": wait.worker,
        "since": wait.since,
        "started": wait.started,
        "microseconds": wait.microseconds,
        "segments": [
            {"cause": each.cause, "microseconds": each.microseconds, "by": each.by}
            for each in wait.segments
        ],
    }
