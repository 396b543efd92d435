"""``leasebook demo``: the main job on real input, with a crash in the middle."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import click
from rich.live import Live
from sqlalchemy import Engine, text

from ...examples.pages import book
from ...projections.check import check
from ...projections.report import summarise, worst
from ...projections.story import Line, tell
from ..app.book import Book
from ..postgres.reader import PostgresReader
from .demo_run import KILL_AT, SCHEMA, Producers, Workers, prepare, read_events
from .demo_view import Moment, depth_of, live, report_panel
from .options import dsn_option, json_option
from .output import FINDING, answering, console, finish, print_json

LOOK_SECONDS = 0.5
SECONDS_MAX = 120.0


@click.command()
@dsn_option
@json_option
@click.option("--events", type=click.IntRange(1), help="Replay only the first N events.")
@click.option("--svg", type=click.Path(path_type=Path), help="Also draw the report to this file.")
def demo(dsn: str | None, as_json: bool, events: int | None, svg: Path | None) -> None:
    """Replay real page events with two workers, kill one, and explain what happened.

    Uses the schema leasebook_demo, which it drops first. Exit 1 when anything was lost.
    """
    with answering(), book, tempfile.TemporaryDirectory(prefix="leasebook-demo-") as logs:
        if dsn is not None:
            book.configure(dsn=dsn)
        report, story = _run(book, Path(logs), events, quiet=as_json)
    if as_json:
        print_json({**report, "story": [str(line) for line in story]})
    else:
        if svg is not None:
            console.record = True
        console.print(report_panel(report, story))
        if svg is not None:
            console.save_svg(str(svg), title="make demo")
    finish(FINDING if report["lost_events"] or report["violations"] else 0)


def _run(
    book: Book, logs: Path, most: int | None, *, quiet: bool
) -> tuple[dict[str, Any], list[Line]]:
    began = monotonic()
    engine = book.engine()
    prepare(engine)
    producers = Producers(engine, read_events(most))
    workers = Workers(book.dsn, logs)
    reader = PostgresReader(book.dsn, SCHEMA)
    try:
        for name in ("ada", "grace"):
            workers.start(name)
        producers.start()
        moments = _watch(producers, workers, reader, began)
        if quiet:
            for _ in moments:
                pass
        else:
            with Live(console=console, refresh_per_second=4, transient=True) as screen:
                for moment in moments:
                    screen.update(live(moment))
    finally:
        producers.stop()
        workers.stop()
    if producers.failure is not None:
        raise producers.failure
    report = _report(reader, engine, producers, monotonic() - began)
    with reader.snapshot() as snapshot:
        story = tell(worst(snapshot.log()) or (), {})
    reader.close()
    engine.dispose()
    return report, story


def _watch(
    producers: Producers, workers: Workers, reader: PostgresReader, began: float
) -> Iterator[Moment]:
    """Look twice a second until all is worked off; kill a worker on the way."""
    note = "two workers, ada and grace"
    last_at, last_accepted, last_runs = began, 0, 0
    while True:
        sleep(LOOK_SECONDS)
        running, now = producers.running, monotonic()
        depth, counts = depth_of(reader.stats()), reader.counts()
        runs = counts.get("completed.v1", 0)
        passed = now - last_at
        yield Moment(
            now - began,
            len(producers.events),
            producers.accepted,
            (producers.accepted - last_accepted) / passed,
            runs,
            (runs - last_runs) / passed,
            counts.get("lease_expired.v1", 0),
            depth,
            note,
        )
        last_at, last_accepted, last_runs = now, producers.accepted, runs
        share = producers.accepted / len(producers.events)
        if workers.killed is None and share >= KILL_AT and depth["running"]:
            workers.kill("ada")
            workers.start("edith")
            note = f"ada was killed (SIGKILL) with {depth['running']} jobs running; edith came"
        for name in workers.dead():
            raise click.ClickException(f"worker {name} ended: {_tail(workers.folder, name)}")
        if not running and not sum(depth.values()):
            return
        if now - began > SECONDS_MAX:
            raise click.ClickException(f"not done after {SECONDS_MAX:.0f} s: {depth}")


def _report(
    reader: PostgresReader, engine: Engine, producers: Producers, seconds: float
) -> dict[str, Any]:
    """Everything from the log and the business tables, nothing from the demo's own counting."""
    with engine.connect() as connection:
        changes = connection.scalar(text(f'select sum(changes) from "{SCHEMA}".pages'))
    with reader.snapshot() as snapshot:
        summary = summarise(snapshot.log())
        violations = sum(1 for _ in check(snapshot.log(), snapshot.rows()))
    return {
        "events": int(changes or 0),
        "groups": summary.groups,
        "runs": summary.runs,
        "runs_saved": summary.runs_saved,
        "rate_limited": summary.rate_limited,
        "retries": summary.retries,
        "leases_lost": summary.leases_lost,
        "leases_rerun": summary.lost_runs_repeated,
        "late_results_refused": reader.counts().get("late_write_refused", 0),
        "lost_events": int(changes or 0) - summary.items_completed,
        "violations": violations,
        "seconds": round(seconds, 1),
    }


def _tail(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(errors="replace")[-1_500:]
