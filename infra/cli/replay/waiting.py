"""``replay wait``: why jobs started late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

import click

from ....domain.log import Recorded
from ....projections.replay.clock import length
from ....projections.replay.totals import Totals
from ....projections.replay.waits import Segment, Wait, waits
from ....projections.wording import count
from ...replay_ports import LOOK_BACK
from ..output import finish
from ..tables import print_table
from .asking import Asked, Replay, common, replaying
from .showing import Record, print_records, stamp

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
        found = waits_found(replay)
        if asked.as_json:
            print_records(asked, replay, map(_record, found))
        else:
            totals = Totals(limit)
            for wait in found:
                totals.add(wait)
            _show(totals)
    finish(0)


def waits_found(replay: Replay) -> Iterator[Wait]:
    """The waits of the jobs asked about that ended in the window, or go on at its end."""
    asked, chosen = replay.choice, set[UUID]()
    known = replay.since - LOOK_BACK
    if replay.history.known_from is not None:
        known = max(known, replay.history.known_from)
    log = _noting(replay, known, chosen)
    for wait in waits(log, replay.facts(), replay.until, known):
        ended = wait.started or replay.until
        wanted = asked.every_job or wait.job_id in chosen
        if wanted and asked.within(ended) and asked.of_worker(wait.worker):
            yield wait


def _noting(replay: Replay, since: datetime, chosen: set[UUID]) -> Iterator[Recorded]:
    """The events of all jobs, since others are what a job waits for; ``chosen`` gets its ids."""
    for life in replay.everything(since):
        if not replay.choice.every_job and replay.choice.of_job(life[0].after.spec):
            chosen.add(life[0].recorded.job_id)
        yield from (step.recorded for step in life)


def _show(totals: Totals) -> None:
    still = count(totals.going_on, "job")
    click.echo(f"{count(totals.over, 'start')}, {still} still waiting")
    rows: list[list[object]] = [
        [cause.value, total.waits, length(total.microseconds), share, length(total.longest)]
        for cause, total, share in totals.shares()
    ]
    if rows:
        print_table(["waited for", "waits", "together", "share", "longest"], rows)
    if not totals.longest:
        return
    click.echo()
    columns = ["job", "name", "start", "started", "waited", "for"]
    print_table(columns, [_row(wait) for wait in totals.longest])
    if totals.waits > totals.keep:
        click.echo(f"these are the {totals.keep:,} longest; --limit shows more")


def _row(wait: Wait) -> list[object]:
    started, waited = stamp(wait.started) or "not yet", length(wait.microseconds)
    return [wait.job_id, wait.name, wait.start, started, waited, _told(wait.segments)]


def _told(segments: Sequence[Segment]) -> str:
    """Without what took less than a millisecond; programs get all of it."""
    told: list[str] = []
    for each in segments:
        by = "" if each.by is None else f" {each.by}"
        if each.microseconds >= 1_000:
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
