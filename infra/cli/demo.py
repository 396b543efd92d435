"""``leasebook demo``: the main job on real input, with a crash in the middle."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Any

import click
from attrs import define
from rich.live import Live
from sqlalchemy import text

from ...domain.log import Recorded
from ...examples.pages import book
from ...projections.check import check
from ...projections.report import interrupted, summarise, worst
from ...projections.story import Line, tell
from ..postgres.reader import PostgresReader
from .demo_run import SCHEMA, DemoFailed, Producers, Workers, fresh_schema, read_events
from .demo_view import Moment, depth_of, draw, live, report_panel
from .history import LocalZone, worker_names
from .options import dsn_option, json_option
from .output import FINDING, answering, finish, print_json
from .tables import console

LOOK_SECONDS = 0.25
LINE_SECONDS = 5.0
SECONDS_MAX = 150.0
#: From this share of accepted events on, a worker is killed at the first look that finds it in the
#: middle of so many runs; when no more events come, in the middle of any.
KILL_FROM = 0.4
KILL_RUNS = 12
FIRST, SECOND, THIRD = "ada", "grace", "edith"


@click.command()
@dsn_option
@json_option
@click.option("--events", type=click.IntRange(1), help="Replay only the first N events.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also draw the report to this file.",
)
def demo(dsn: str | None, as_json: bool, events: int | None, svg: Path | None) -> None:
    """Replay real page events with two workers, kill one, and explain what happened.

    Uses the schema leasebook_demo, which it drops first. Exit 1 when anything was lost.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    with (
        answering(as_json=as_json),
        book,
        tempfile.TemporaryDirectory(prefix="leasebook-demo-") as logs,
    ):
        if dsn is not None:
            book.configure(dsn=dsn)
        report, story = _run(Path(logs), events, quiet=as_json)
    if svg is not None:
        draw(svg, report, story)
    if as_json:
        print_json({**report, "story": [str(line) for line in story]})
    else:
        console.print(report_panel(report, story))
    finish(FINDING if report["lost_events"] or report["violations"] else 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(logs: Path, most: int | None, *, quiet: bool) -> tuple[dict[str, Any], list[Line]]:
    began = monotonic()
    engine = book.engine()
    reader = PostgresReader(book.dsn, SCHEMA)
    producers = Producers(engine, read_events(most))
    workers = Workers(book.dsn, logs)
    try:
        with fresh_schema(engine):
            try:
                for name in (FIRST, SECOND):
                    workers.start(name)
                producers.start()
                _show(_Watch(producers, workers, reader, began).moments(), quiet=quiet)
            finally:
                producers.stop()
                workers.stop()
            with engine.connect() as connection:
                changes = connection.scalar(text(f'select sum(changes) from "{SCHEMA}".pages'))
            return _report(reader, int(changes or 0), began)
    finally:
        reader.close()
        engine.dispose()


def _show(moments: Iterable[Moment], *, quiet: bool) -> None:
    """A live view for a terminal, a line now and then for anything else."""
    if quiet:
        for _ in moments:
            pass
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as screen:
            for moment in moments:
                screen.update(live(moment), refresh=True)
    else:
        shown, note = -LINE_SECONDS, ""
        for moment in moments:
            if moment.note != note:
                note = moment.note
                click.echo(note)
            if moment.seconds - shown >= LINE_SECONDS:
                shown = moment.seconds
                click.echo(str(moment))


@define
class _Watch:
    """Looks at the running demo, and kills a worker on the way."""

    producers: Producers
    workers: Workers
    reader: PostgresReader
    began: float
    note: str = f"two workers, {FIRST} and {SECOND}"

    def moments(self) -> Iterator[Moment]:
        """One look after the other, until all is worked off."""
        last_at, last_accepted, last_runs = self.began, 0, 0
        while True:
            sleep(LOOK_SECONDS)
            running, now = self.producers.running, monotonic()
            accepted = self.producers.accepted
            depth, counts = depth_of(self.reader.stats()), self.reader.counts()
            runs, passed = counts.get("completed.v1", 0), now - last_at
            yield Moment(
                now - self.began,
                len(self.producers.events),
                accepted,
                (accepted - last_accepted) / passed,
                runs,
                (runs - last_runs) / passed,
                counts.get("lease_expired.v1", 0),
                depth,
                self.note,
            )
            last_at, last_accepted, last_runs = now, accepted, runs
            self.workers.check()
            if self.workers.killed is None and accepted >= KILL_FROM * len(self.producers.events):
                self._kill_when_busy(KILL_RUNS if running else 1)
            if not running and not sum(depth.values()):
                return
            if now - self.began > SECONDS_MAX:
                raise DemoFailed(f"not done after {SECONDS_MAX:.0f} s: {depth}")

    def _kill_when_busy(self, runs_min: int) -> None:
        leased = self.reader.jobs(None, None, "leased", 1_000)
        runs = sum(
            job.lease is not None and job.lease.worker.startswith(f"{FIRST}#") for job in leased
        )
        if runs < runs_min:
            return
        self.workers.kill(FIRST)
        self.workers.start(THIRD)
        self.note = f"{FIRST} was killed (SIGKILL) in the middle of {runs} runs; {THIRD} came"


def _report(
    reader: PostgresReader, changes: int, began: float
) -> tuple[dict[str, Any], list[Line]]:
    """Everything from the log and the business table, nothing from the demo's own counting.

    ``changes`` is what the business table has seen.
    """
    with reader.snapshot() as snapshot:
        log = list(snapshot.log())
        violations = sum(1 for _ in check(log, snapshot.rows()))
    summary = summarise(log)
    report = {
        "events": changes,
        "groups": summary.groups,
        "runs": summary.runs,
        "runs_saved": summary.runs_saved,
        "rate_limited": summary.rate_limited,
        "retries": summary.retries,
        "leases_lost": summary.leases_lost,
        "leases_rerun": summary.lost_runs_repeated,
        "late_results_refused": reader.counts().get("late_write_refused", 0),
        "lost_events": changes - summary.items_completed,
        "violations": violations,
        "seconds": round(monotonic() - began, 1),
    }
    return report, _story(log)


def _story(log: Sequence[Recorded]) -> list[Line]:
    """The job that suffered most, of those that met the crash if there are any."""
    stream = worst(log, interrupted) or ()
    return tell(stream, worker_names(stream), LocalZone())
