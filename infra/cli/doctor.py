"""``leasebook doctor``: what ails the database under the queue, and what to do about it."""

from __future__ import annotations

import attrs
import click

from ...projections.doctor import diagnose
from ...projections.health import Severity, Thresholds
from ..postgres.doctor import examine
from ..postgres.schema.name import Schema
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: None}


@click.command("doctor")
@connection_options
@click.option(
    "--old",
    default=Thresholds().snapshot_seconds,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds from which on an open transaction is a finding.",
)
def doctor(dsn: str | None, schema: str, as_json: bool, old: float) -> None:
    """Look for what slows the queue down: old snapshots, dead rows, bloat, settings, disk.

    Exit 1 when something is wrong; notes alone are no finding.
    """
    with answering(as_json=as_json), plain_book(dsn, schema) as book:
        facts = examine(book.dsn, Schema(book.schema))
    findings = diagnose(facts, Thresholds(snapshot_seconds=old))
    wrong = [each for each in findings if each.severity is not Severity.NOTE]
    if as_json:
        print_json(
            {
                "healthy": not wrong,
                "findings": [attrs.asdict(each) for each in findings],
                "facts": attrs.asdict(facts),
            }
        )
    else:
        for each in findings:
            level = click.style(f"{each.severity:7}", fg=COLOURS[each.severity])
            click.echo(f"{level} {each.seen}")
            click.echo(f"        to do: {each.remedy}")
        if not wrong:
            click.echo("nothing is wrong")
    finish(FINDING if wrong else 0)
