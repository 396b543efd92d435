"""``leasebook projection``: hold the claim table against the log and mend it, under way."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager

import attrs
import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ...projections.wording import count
from ..app.rebuild import Difference, repair, verify
from ..app.rebuild import Progress as Told
from ..app.shadow import rebuild
from ..postgres.claim_table import PostgresClaimTable
from ..postgres.shadow import PostgresShadow
from ..postgres.windows import PostgresWindows
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json

SHOWN_MAX = 20

Work = Callable[[PostgresClaimTable, Told], Iterator[Difference]]


@click.group()
def projection() -> None:
    """Hold the claim table against the log, and make it from the log again.

    Nothing here writes an event or runs a handler, and workers go on meanwhile.
    """


@projection.command("verify")
@connection_options
def verify_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Compare every row with the log; exit 1 when one differs.

    It only reads, in short transactions.
    """
    found = _done(verify, dsn, schema, as_json=as_json)
    _tell(found, "differ from the log", as_json=as_json)
    finish(FINDING if found else 0)


@projection.command("repair")
@connection_options
def repair_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Mend every row that differs from the log; exit 1 when one could not be mended.

    Each is mended under its lock.  Broken off, the next repair goes on where this one was.
    """
    found = _done(repair, dsn, schema, as_json=as_json)
    _tell(found, "differed from the log", as_json=as_json)
    left = [each for each in found if each.left is not None]
    if not as_json and found:
        click.echo(f"{len(found) - len(left):,} mended, {len(left):,} left as they are")
    finish(FINDING if left else 0)


@projection.command("rebuild")
@click.option("--shadow", "beside", is_flag=True, help="Beside the table in use; the one way.")
@click.option("--discard", is_flag=True, help="Throw away what a rebuild has left half done.")
@connection_options
def rebuild_command(
    beside: bool, discard: bool, dsn: str | None, schema: str, as_json: bool
) -> None:
    """Make the whole claim table anew from the log, beside the one in use, and swap it in.

    Workers and producers go on; for the swap they wait a fraction of a second. Broken off, the next
    rebuild goes on where this one was. The role must own the tables.
    """
    if beside == discard:
        raise click.UsageError(
            "say --shadow to make the table anew beside the one in use, or --discard to throw away "
            "what a rebuild has left."
        )
    with (
        answering(as_json=as_json),
        plain_book(dsn, schema) as book,
        closing(PostgresShadow(book.dsn, book.schema)) as shadow,
    ):
        shadow.require_schema()
        if discard:
            found = shadow.discard()
            if as_json:
                print_json({"discarded": found})
            else:
                click.echo("the shadow is gone" if found else "there is no shadow")
            return
        with _bar() as told:
            done = rebuild(shadow, told, _tried)
    if as_json:
        print_json(attrs.asdict(done))
        return
    click.echo(
        f"the claim table is made anew from {count(done.events, 'event')}; the swap kept others "
        f"waiting for {done.gate_seconds * 1000:.0f} ms"
    )


@projection.command("adopt")
@connection_options
def adopt_command(dsn: str | None, schema: str, as_json: bool) -> None:
    """Say that the log's transaction numbers are those of this cluster, as after pg_upgrade.

    Never after a dump was restored: its numbers are those of the cluster that it came from.
    """
    with (
        answering(as_json=as_json),
        plain_book(dsn, schema) as book,
        closing(PostgresWindows(book.dsn, book.schema)) as windows,
    ):
        windows.require_schema()
        windows.adopt()
    if as_json:
        print_json({"adopted": True})
    else:
        click.echo("the log is at home in this cluster from now on")


def _tried(why: str, pause: float) -> None:
    click.echo(f"no swap yet: {why}; again in {pause:g} s", err=True)


def _done(work: Work, dsn: str | None, schema: str, *, as_json: bool) -> list[Difference]:
    with (
        answering(as_json=as_json),
        plain_book(dsn, schema) as book,
        closing(PostgresClaimTable(book.dsn, book.schema)) as table,
    ):
        table.require_schema()
        with _bar() as told:
            return list(work(table, told))


@contextmanager
def _bar() -> Generator[Told]:
    """A bar with rate and remaining time, where the error output is a terminal."""
    bar = Progress(
        TextColumn("{task.completed:,.0f} of about {task.total:,.0f} events"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    if not bar.console.is_terminal:
        yield lambda events, total: None
        return
    with bar:
        task: TaskID = bar.add_task("", total=1, rate="")

        def told(events: int, total: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f}/s"
            bar.update(task, completed=events, total=max(1, total), rate=rate)

        yield told


def _tell(found: list[Difference], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"rows": [attrs.asdict(each) for each in found]})
        return
    for each in found[:SHOWN_MAX]:
        left = "" if each.left is None else f" (left: {each.left})"
        click.echo(f"job {each.job_id}: {'; '.join(each.found)}{left}")
    if len(found) > SHOWN_MAX:
        click.echo(f"… and {len(found) - SHOWN_MAX:,} more; --json shows all")
    click.echo(f"{count(len(found), 'row')} {what}")
