"""``replay workers`` and ``replay timeline``: who ran what, and when."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import click

from ....projections.replay.clock import length
from ....projections.replay.runs import Run
from ....projections.replay.timeline import MARKS, Slot, draw, slots, trace_events
from ....projections.replay.workers import Slow, Work, Workforce, workforce
from ....projections.wording import count
from ..output import FINDING, finish, plain, save
from ..tables import print_table
from .asking import Asked, Replay, common, replaying
from .showing import Record, print_records, run_record, stamp

COLUMNS = 72


@click.command("workers")
@common()
def workers_command(asked: Asked) -> None:
    """What each worker ran, and where one was slower than the others at the same work.

    Exit 1 when one was.
    """
    with replaying(asked) as replay:
        found = work_found(replay, replay.runs())
        if asked.as_json:
            print_records(asked, replay, _records(found))
        else:
            _show(found)
    finish(FINDING if found.slow else 0)


def work_found(replay: Replay, runs: Iterable[Run]) -> Workforce:
    """What the workers asked about did.  Who is slow shows beside the others only."""
    whole = workforce(touching(runs, replay), replay.facts(), replay.until)
    return Workforce(
        {name: work for name, work in whole.work.items() if replay.choice.of_worker(name)},
        tuple(each for each in whole.slow if replay.choice.of_worker(each.worker)),
    )


def touching(runs: Iterable[Run], replay: Replay) -> Iterator[Run]:
    """Those of the runs that touch the window, of any worker."""
    return (run for run in runs if run.ended is None or run.ended >= replay.since)


def _show(found: Workforce) -> None:
    if not found.work:
        click.echo("nothing ran")
        return
    columns = ["worker", "slots", "runs", "done", "failed", "released", "lost", "late", "running"]
    rows = [_row(work) for work in found.work.values()]
    print_table([*columns, "run time", "first", "last"], rows)
    for slow in found.slow:
        click.echo(
            f"{slow.worker} is slow at {slow.name}: {length(slow.median)} in the median of "
            f"{count(slow.runs, 'run')}, {slow.factor:.1f} times the others' {length(slow.others)}"
        )


def _row(work: Work) -> list[object]:
    ends = work.ends
    failed = ends["retry_scheduled"] + ends["failed"]
    slots_ = None if work.facts is None else work.facts.capacity
    return [
        work.worker, slots_, work.runs, ends["completed"], failed, ends["released"],
        work.lost, work.refused, ends["running"],
        length(work.microseconds), stamp(work.first), stamp(work.last),
    ]  # fmt: skip


def _records(found: Workforce) -> Iterator[Record]:
    for work in found.work.values():
        facts = work.facts
        yield {
            "record": "worker",
            "worker": work.worker,
            "started": None if facts is None else facts.started,
            "ended": None if facts is None else facts.ended,
            "died": None if facts is None else facts.died,
            "capacity": None if facts is None else facts.capacity,
            "runs": work.runs,
            "ends": dict(work.ends),
            "lost": work.lost,
            "refused": work.refused,
            "microseconds": work.microseconds,
            "first": work.first,
            "last": work.last,
        }
    yield from map(_slow, found.slow)


def _slow(slow: Slow) -> Record:
    return {
        "record": "slow",
        "worker": slow.worker,
        "name": slow.name,
        "runs": slow.runs,
        "median_microseconds": slow.median,
        "others_microseconds": slow.others,
    }


@click.command("timeline")
@click.option(
    "--trace", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write Chrome trace events into this file as well; ui.perfetto.dev opens it.",
)  # fmt: skip
@common()
def timeline_command(asked: Asked, trace: Path | None) -> None:
    """The runs of every worker, slot by slot."""
    with replaying(asked) as replay:
        found = slots(
            run for run in touching(replay.runs(), replay) if replay.choice.of_worker(run.worker)
        )
        if trace is not None:
            events = list(trace_events(found, replay.until))
            save(trace, json.dumps({"traceEvents": events}, default=plain))
        if asked.as_json:
            print_records(asked, replay, _slot_records(found))
        else:
            _draw(found, *_ends(asked, replay, found))
    finish(0)


def _ends(asked: Asked, replay: Replay, found: list[Slot]) -> tuple[datetime, datetime]:
    """The window; when none was asked for, as much of it as there are runs in."""
    runs = [run for slot in found for run in slot.runs]
    if not asked.no_window or not runs:
        return replay.since, replay.until
    begin = min(run.began for run in runs)
    end = max(run.ended or replay.until for run in runs)
    return max(begin, replay.since), min(end, replay.until)


def _draw(found: list[Slot], since: datetime, until: datetime) -> None:
    click.echo(f"from {stamp(since)} to {stamp(until)}")
    if not found:
        click.echo("nothing ran")
        return
    click.echo(", ".join(f"{mark} {end}" for end, mark in MARKS.items()))
    names = max(len(f"{slot.worker} {slot.number}") for slot in found)
    for slot in found:
        drawn = draw(slot, since, until, COLUMNS)
        click.echo(f"{f'{slot.worker} {slot.number}':{names}} |{drawn}|")


def _slot_records(found: list[Slot]) -> Iterator[Record]:
    for slot in found:
        for run in slot.runs:
            yield run_record("run", run) | {"slot": slot.number}
