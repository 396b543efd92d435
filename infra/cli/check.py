"""``leasebook check``: hold the log against its invariants, and the claim table against the log."""

from __future__ import annotations

import itertools

import click

from ...projections.check import INVARIANTS, Violation, check
from ...projections.wording import count
from ..postgres.reader import PostgresReader
from .look import reader
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json

SHOWN_MAX = 20


@click.command("check")
@connection_options
def check_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Check every invariant on the whole log; exit 1 and show the events when one is broken."""
    with answering(as_json=as_json), plain_book(dsn, schema) as book, reader(book) as queue:
        violations, events = _checked(queue)
    if as_json:
        print_json(
            {
                "events": events,
                "invariants": list(INVARIANTS),
                "violations": [_document(each) for each in violations],
            }
        )
    else:
        for each in violations[:SHOWN_MAX]:
            click.echo(str(each))
            click.echo(f"  {INVARIANTS[each.invariant]}")
            for event in each.events:
                click.echo(f"  version {event.version} at {event.at}: {event.event.kind}")
        if len(violations) > SHOWN_MAX:
            click.echo(f"… and {len(violations) - SHOWN_MAX:,} more; --json shows all")
        told = count(len(violations), "violation")
        click.echo(f"{told} of {', '.join(INVARIANTS)} in {count(events, 'event')}")
    finish(FINDING if violations else 0)


def _checked(queue: PostgresReader) -> tuple[list[Violation], int]:
    """The violations, and how many events were looked at; one stream is in memory at a time."""
    number = itertools.count()
    with queue.snapshot() as snapshot:
        log = (recorded for recorded, _ in zip(snapshot.log(), number, strict=False))
        return list(check(log, snapshot.rows())), next(number)


def _document(violation: Violation) -> dict[str, object]:
    events = [
        {"version": each.version, "kind": each.event.kind, "at": each.at}
        for each in violation.events
    ]
    return {
        "invariant": violation.invariant,
        "job": violation.job_id,
        "text": violation.text,
        "events": events,
    }
