"""``leasebook incident``: a window as one page that can be sent around."""

from __future__ import annotations

from pathlib import Path

import click

from ...projections.incident.over_time import WaitsOverTime
from ...projections.incident.page import page
from ...projections.incident.suffering import Suffering
from ...projections.incident.values import Incident, Sufferer, changes_within
from ...projections.replay.choosing import Choice
from ...projections.replay.depth import depth_over_time
from ...projections.replay.totals import Totals
from .output import FINDING, finish, save
from .replay.asking import Asked, Replay, common, replaying
from .replay.faults import faults_found
from .replay.waiting import waits_found
from .replay.workers import touching, work_found

POINTS = 600
STRETCHES = 48
SUFFERERS = 10


@click.command()
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the page into this file.",
)  # fmt: skip
@common(formats=False)
def incident(asked: Asked, out: Path) -> None:
    """Write what happened from --from to --to into one HTML page that needs nothing else.

    Depth, waits by cause, failures, lost leases, double runs, workers, and the ten jobs that
    suffered most.  Arguments and results of jobs are not in it; keys, labels, errors and names of
    hosts are.  It only reads.

    Exit codes: 0 clean, 1 faults in the window, 2 refused input, 3 database unavailable.
    """
    with replaying(asked) as replay:
        found = gathered(replay)
    save(out, page(found))
    click.echo(f"wrote {out}")
    finish(0 if found.faults.clean and not found.work.slow else FINDING)


def gathered(replay: Replay) -> Incident:
    """Everything the page tells.  The log is read three times, so that it need not be held."""
    since, until = replay.since, replay.until
    suffering = Suffering(since, until)
    totals, over_time = Totals(1), WaitsOverTime(since, until, STRETCHES)
    for wait in waits_found(replay):
        totals.add(wait)
        over_time.add(wait)
        suffering.add_wait(wait)
    runs = list(replay.runs())
    suffering.add_runs(run for run in touching(runs, replay) if replay.choice.of_worker(run.worker))
    faults = faults_found(replay, runs)
    suffering.add_duplicates(faults.duplicates)
    sufferers = [
        Sufferer(each, tuple(replay.history.events(until, job=each.job_id)))
        for each in suffering.most(SUFFERERS)
    ]
    return Incident(
        since,
        until,
        _chosen(replay.choice),
        depth_over_time(replay.log(), since, until, POINTS),
        totals,
        over_time,
        faults,
        work_found(replay, runs),
        changes_within(replay.history.audit(until), since, until),
        sufferers,
    )


def _chosen(choice: Choice) -> list[str]:
    """The filters, as they were written."""
    names = ("queue", "name", "key", "group", "worker", "job")
    given = {name: getattr(choice, name) for name in names}
    return [f"--{name} {value}" for name, value in given.items() if value is not None]
