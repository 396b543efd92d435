"""``leasebook prune``: take the histories of old jobs out of the log."""

from __future__ import annotations

from datetime import timedelta

import attrs
import click

from ...projections.wording import count
from ..pruning_ports import BATCH_MAX
from .options import age, connection_options, plain_book
from .output import answering, print_json


@click.command()
@click.option(
    "--older-than", required=True, type=age, metavar="AGE",
    help="Jobs that ended longer ago, by the database's clock: 30d, 12h, 15m, 90s.",
)  # fmt: skip
@click.option(
    "--batch", default=BATCH_MAX, show_default=True, type=click.IntRange(1, BATCH_MAX),
    help="Jobs looked at in one transaction.",
)  # fmt: skip
@connection_options
def prune(older_than: timedelta, batch: int, dsn: str | None, schema: str, as_json: bool) -> None:
    """Take the streams of jobs that ended long ago out of the log.

    Jobs that have not ended or are held stay. How each job ended is kept, and so are keys of
    requests. Broken off, run it again.
    """
    with answering(as_json=as_json), plain_book(dsn, schema) as book:
        done = book.prune(older_than, batch=batch)
    if as_json:
        print_json(attrs.asdict(done))
        return
    click.echo(f"{done.pruned:,} of {count(done.looked, 'job')} pruned")
    if done.kept:
        click.echo(f"{done.kept:,} kept until the reader {done.reader!r} has read them")
