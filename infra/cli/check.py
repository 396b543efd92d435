"""``leasebook check``: hold the log against its invariants, and the claim table against the log."""

from __future__ import annotations

import click

from ...projections.check import INVARIANTS, check
from .look import reader
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json

SHOWN_MAX = 20


@click.command("check")
@connection_options
def check_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Check every invariant on the whole log; exit 1 and show the events when one is broken."""
    with answering(), plain_book(dsn, schema) as book, reader(book).snapshot() as snapshot:
        violations = list(check(snapshot.log(), snapshot.rows()))
    if as_json:
        print_json(
            [
                {
                    "invariant": each.invariant,
                    "job": each.job_id,
                    "text": each.text,
                    "versions": [event.version for event in each.events],
                }
                for each in violations
            ]
        )
    else:
        for each in violations[:SHOWN_MAX]:
            click.echo(str(each))
        if len(violations) > SHOWN_MAX:
            click.echo(f"… and {len(violations) - SHOWN_MAX} more")
        held = ", ".join(INVARIANTS)
        click.echo(f"{len(violations)} violations of {held}")
    finish(FINDING if violations else 0)
