"""``leasebook stats``, ``list`` and ``history``: looking at a queue without touching it."""

from __future__ import annotations

from uuid import UUID

import attrs
import click

from ...domain.states import State
from ...projections.story import tell
from ..app.book import Book
from ..postgres.reader import PostgresReader, QueueStats
from .options import connection_options, plain_book
from .output import FINDING, answering, console, finish, print_json, print_table


def reader(book: Book) -> PostgresReader:
    """A reader on the book's database."""
    return PostgresReader(book.dsn, book.schema)


@click.command()
@connection_options
def stats(dsn: str | None, schema: str, as_json: bool) -> None:
    """Show how every queue stands."""
    with answering(), plain_book(dsn, schema) as book:
        queues = reader(book).stats()
    if as_json:
        print_json([attrs.asdict(queue) for queue in queues])
        return
    columns = [name.replace("_", " ") for name in attrs.fields_dict(QueueStats)]
    print_table("queues", columns, [attrs.astuple(queue) for queue in queues])


@click.command("list")
@connection_options
@click.option("--queue", help="Only this queue.")
@click.option("--name", help="Only jobs of this name.")
@click.option("--state", type=click.Choice([*State]), help="Only jobs in this state.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 100_000))
def list_jobs(
    dsn: str | None,
    schema: str,
    as_json: bool,
    queue: str | None,
    name: str | None,
    state: str | None,
    limit: int,
) -> None:
    """List unfinished and held jobs, the next due first."""
    with answering(), plain_book(dsn, schema) as book:
        jobs = reader(book).jobs(queue, name, state, limit)
    shown = [
        {
            "id": job.id,
            "name": job.spec.name,
            "queue": job.spec.queue,
            "priority": job.spec.priority,
            "state": str(job.state),
            "due_at": job.due_at,
            "starts": job.starts,
            "attempts": f"{job.attempts}/{job.spec.policy.retries + 1}",
            "group_key": job.spec.group_key,
            "items": len(job.items) or None,
            "worker": None if job.lease is None else job.lease.worker,
            "held": job.held,
        }
        for job in jobs
    ]
    if as_json:
        print_json(shown)
        return
    columns = list(shown[0]) if shown else ["id", "name", "queue", "state"]
    print_table("unfinished and held jobs", columns, [list(row.values()) for row in shown])


@click.command()
@click.argument("job", type=click.UUID)
@connection_options
def history(job: UUID, dsn: str | None, schema: str, as_json: bool) -> None:
    """Tell what happened to JOB and why; exit 1 when there is no such job."""
    with answering(), plain_book(dsn, schema) as book:
        stream = book.log().stream(job)
    if as_json:
        print_json(
            [
                {"version": each.version, "kind": each.event.kind, **attrs.asdict(each.event)}
                for each in stream
            ]
        )
    elif stream:
        for line in tell(stream, {}):
            console.print(str(line), markup=False, highlight=False)
    else:
        click.echo(f"no job {job} in this log", err=True)
    finish(0 if stream else FINDING)
