"""``replay depth``: how many jobs stood where over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from ....projections.replay.depth import DepthOverTime, depth_over_time
from ....projections.replay.picture import bars, depth_svg
from ..output import finish, save
from .asking import Asked, common, replaying
from .showing import Record, print_records, stamp

COLUMNS = 60
POINTS = 600


@click.command("depth")
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Draw a picture into this file as well.",
)  # fmt: skip
@click.option(
    "--points", default=POINTS, show_default=True, type=click.IntRange(1, 100_000),
    help="Merge changes into at most so many points, each the highest of its stretch.",
)  # fmt: skip
@common(workers=False)
def depth_command(asked: Asked, svg: Path | None, points: int) -> None:
    """How many jobs were queued, grouped, leased, waiting for a retry and held, by queue."""
    with replaying(asked) as replay:
        depth = depth_over_time(
            replay.log(), replay.since, replay.until, points, trim=asked.no_window
        )
        if svg is not None:
            save(svg, depth_svg(depth))
        if asked.as_json:
            print_records(asked, replay, _records(depth))
        else:
            _show(depth)
    finish(0)


def _show(depth: DepthOverTime) -> None:
    click.echo(f"from {stamp(depth.since)} to {stamp(depth.until)}")
    if not depth.counts:
        click.echo("no job was open")
        return
    most = max(max(numbers) for numbers in depth.counts.values())
    digits, names = len(f"{most:,}"), max(len(" ".join(place)) for place in depth.counts)
    head = f"{'':{names}}  {'most':>{max(4, digits)}}  {'last':>{max(4, digits)}}"
    click.echo(click.style(head, bold=True))
    for place, numbers in depth.counts.items():
        top, last = f"{max(numbers):,}", f"{numbers[-1]:,}"
        wide = max(4, digits)
        drawn = bars(depth, place, COLUMNS)
        click.echo(f"{' '.join(place):{names}}  {top:>{wide}}  {last:>{wide}}  {drawn}".rstrip())


def _records(depth: DepthOverTime) -> Iterator[Record]:
    for index, at in enumerate(depth.times):
        for (queue, standing), numbers in depth.counts.items():
            yield {
                "record": "depth",
                "at": at,
                "queue": queue,
                "standing": standing,
                "jobs": numbers[index],
                "merged": depth.merged,
            }
