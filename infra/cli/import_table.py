"""``leasebook import-table`` and ``leasebook cut-over``: moving here from another queue."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
import click

from ...domain.errors import InvalidValue
from ...projections.wording import count
from ..app.book import Book
from ..app.importing import (
    BATCH_ROWS_MAX,
    CutOverRefused,
    ImportReport,
    import_table,
    refuse_what_came,
    refuse_what_is_left,
)
from ..app.mapping import TableMap, read_map
from ..documents import dumps
from ..import_ports import Noted
from ..ports import StoreUnavailable
from ..postgres.dsn import connect
from ..postgres.old_table import PostgresOldTable, find_table
from ..postgres.schema.check import require_schema
from ..postgres.schema.name import Schema
from .options import book_options, load_book
from .output import FINDING, answering, finish, print_json

SHOWN_MAX = 20

from_option = click.option(
    "--from",
    "name",
    required=True,
    metavar="TABLE",
    help="The queue's table, in the same database.",
)
map_option = click.option(
    "--map", "path", type=click.Path(dir_okay=False), help="How its columns become jobs (TOML)."
)


@click.command("import-table")
@click.argument("target", metavar="MODULE:BOOK")
@from_option
@map_option
@click.option("--execute", is_flag=True, help="Import; without it only the report is made.")
@click.option(
    "--batch-rows",
    default=BATCH_ROWS_MAX,
    show_default=True,
    type=click.IntRange(1, BATCH_ROWS_MAX),
    help="Rows in one transaction.",
)
@book_options
def import_command(
    target: str,
    name: str,
    path: str | None,
    execute: bool,
    batch_rows: int,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
) -> None:
    """Import the jobs that wait in another queue's table; the table is never changed.

    Exit 1 while rows are busy or set aside: run it again when they have been seen to.
    """
    with answering(as_json=as_json), load_book(target, dsn, schema) as book:
        mapping = _read(path)
        with _table(book, name) as table:
            report = import_table(table, mapping, book.jobs, execute=execute, batch_rows=batch_rows)
    if as_json:
        print_json(_document(report))
    else:
        _tell(report)
    finish(0 if report.complete else FINDING)


@click.command("cut-over")
@click.argument("target", metavar="MODULE:BOOK")
@from_option
@map_option
@click.option("--undo", is_flag=True, help="Take the guard away again.")
@book_options
def cut_over(
    target: str,
    name: str,
    path: str | None,
    undo: bool,
    dsn: str | None,
    schema: str | None,
    as_json: bool,
) -> None:
    """Put a guard on an imported table: from then on whoever writes to it gets an error.

    Refused while rows could still be imported. Rows that were set aside stay where they are.
    """
    with answering(as_json=as_json), load_book(target, dsn, schema) as book:
        mapping = None if undo else _read(path)
        with _table(book, name) as table:
            stood = table.guarded()
            if mapping is None:
                if stood:
                    table.unguard(Noted("cut_over_undone", None, dumps({"source": table.source})))
            elif not stood:
                _guard(book, table, mapping, _undo_command(target, name))
    if as_json:
        print_json({"source": table.source, "guarded": not undo, "changed": stood == undo})
    elif undo:
        click.echo(f"{table.source} takes writes{' again' if stood else ', as before'}")
    else:
        click.echo(f"{table.source} takes no more work{', as before' if stood else ''}")


def _guard(book: Book, table: PostgresOldTable, mapping: TableMap, undo: str) -> None:
    """Check, then put the guard up and check again while nobody can write."""
    report = import_table(table, mapping, book.jobs, execute=False)
    refuse_what_is_left(report)
    hint = f"Enqueue with leasebook instead. To take the guard away: {undo}"
    try:
        with table.guarding(mapping.reading, hint) as rows:
            refuse_what_came(report, rows)
            table.append([Noted("cut_over", None, dumps({"source": table.source}))])
    except StoreUnavailable as error:
        pids = table.writers()
        if not pids:
            raise
        raise CutOverRefused(
            table.source,
            f"sessions that have written to it are still open (pid {', '.join(map(str, pids))})",
            "Stop the old workers and producers, then try again",
        ) from error


def _read(path: str | None) -> TableMap:
    if path is None:
        raise click.UsageError("say with --map how the table's columns become jobs.")
    try:
        return read_map(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(
            "map", f"{path} ({error})", "name a TOML file that can be read"
        ) from None


@contextmanager
def _table(book: Book, name: str) -> Generator[PostgresOldTable]:
    schema = Schema(book.schema)
    with connect(book.dsn) as connection:
        require_schema(connection, schema)
        connection.rollback()
        connection.autocommit = True
        yield find_table(connection, schema, name)


def _undo_command(target: str, name: str) -> str:
    return f"leasebook cut-over {shlex.quote(target)} --from {shlex.quote(name)} --undo"


def _document(report: ImportReport) -> dict[str, object]:
    return {
        "source": report.source,
        "executed": report.executed,
        **report.counts,
        "busy_rows": report.busy,
        "set_aside_rows": [attrs.asdict(each) for each in report.aside],
    }


def _tell(report: ImportReport) -> None:
    did = "imported" if report.executed else "would be imported"
    click.echo(f"{report.source}: {count(report.imported, 'row')} {did}")
    for number, words in (
        (report.already, "had been imported before"),
        (report.finished, "are over and stay behind"),
        (len(report.busy), "are busy: another session holds them; run this again later"),
        (len(report.aside), "are set aside"),
    ):
        if number:
            click.echo(f"  {number:,} {words}")
    for key in report.busy[:SHOWN_MAX]:
        click.echo(f"  busy {key}")
    for each in report.aside[:SHOWN_MAX]:
        click.echo(f"  set aside {each.key} ({each.reason}): {each.seen} To do: {each.remedy}.")
    if max(len(report.busy), len(report.aside)) > SHOWN_MAX:
        click.echo(f"  … these are the first {SHOWN_MAX}; --json shows all")
    if not report.executed:
        click.echo("nothing was written: this was a dry run; --execute imports")
