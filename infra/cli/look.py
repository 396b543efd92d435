"""``leasebook stats`` and ``leasebook list``: looking at a queue without touching it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta

import attrs
import click

from ...domain.job import Job
from ...domain.states import State
from ...projections.wording import count, duration
from ..app.book import Book
from ..postgres.reader import PostgresReader, QueueStats
from .options import connection_options, plain_book
from .output import answering, print_json
from .tables import print_table

#: A done job has no row to list.
STATES = [state.value for state in State if state is not State.DONE]


@contextmanager
def reader(book: Book) -> Generator[PostgresReader]:
    """A reader on the book's database, once its schema is known to be complete."""
    made = PostgresReader(book.dsn, book.schema)
    try:
        made.require_schema()
        yield made
    finally:
        made.close()


@click.command()
@connection_options
def stats(dsn: str | None, schema: str, as_json: bool) -> None:
    """Show how every queue stands."""
    with answering(as_json=as_json), plain_book(dsn, schema) as book, reader(book) as queue:
        queues = queue.stats()
        at = queue.now()
    if as_json:
        print_json([attrs.asdict(each) for each in queues])
    elif not queues:
        click.echo("nothing waits, runs or is held: every queue is empty")
    else:
        columns = [*list(attrs.fields_dict(QueueStats))[:-1], "oldest"]
        print_table(columns, [_stats_row(each, at) for each in queues])


def _stats_row(queue: QueueStats, at: datetime) -> list[object]:
    since = queue.oldest_due
    late = None if since is None else f"{_short(at - since)} ago"
    return [*attrs.astuple(queue)[:-1], late]


@click.command("list")
@connection_options
@click.option("--queue", help="Only this queue.")
@click.option("--name", help="Only jobs of this name.")
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
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
    with answering(as_json=as_json), plain_book(dsn, schema) as book, reader(book) as look:
        jobs = look.jobs(queue, name, state, limit)
        at = look.now()
    if as_json:
        print_json([_document(job) for job in jobs])
    elif not jobs:
        click.echo("no unfinished or held job matches")
    else:
        columns = ["job", "name", "state", "when", "tries", "more"]
        print_table(columns, [_job_row(job, at) for job in jobs])
        if len(jobs) == limit:
            click.echo(f"these are the first {limit:,}; --limit shows more")


def _document(job: Job) -> dict[str, object]:
    spec, lease = job.spec, job.lease
    return {
        "id": job.id,
        "name": spec.name,
        "queue": spec.queue,
        "priority": spec.priority,
        "state": job.state,
        "held": job.held,
        "outcome": job.outcome,
        "due_at": job.due_at,
        "enqueued_at": spec.enqueued_at,
        "starts": job.starts,
        "attempts": job.attempts,
        "attempts_max": spec.policy.retries + 1,
        "label": spec.label,
        "owner": spec.owner,
        "subject": spec.subject,
        "group_key": spec.group_key,
        "ordering_key": spec.ordering_key,
        "after": spec.after,
        "blocked_by": job.blocked_by,
        "items": len(job.items) if spec.group is not None else None,
        "worker": None if lease is None else lease.worker,
    }


def _job_row(job: Job, at: datetime) -> list[object]:
    spec = job.spec
    more = [f"queue {spec.queue}, priority {spec.priority}"]
    if job.lease is not None:
        more.append(f"worker {job.lease.worker}")
    if spec.group is not None:
        more.append(f"{count(len(job.items), 'item')} of {spec.group_key}")
    words = {
        "behind": job.blocked_by,
        "key": spec.ordering_key,
        "label": spec.label,
        "owner": spec.owner,
        "subject": spec.subject,
    }
    more += [f"{word} {text}" for word, text in words.items() if text is not None]
    if job.held:
        more.append(f"held: {job.outcome}")
    tries = f"{job.attempts}/{spec.policy.retries + 1}"
    return [job.id, spec.name, str(job.state), _when(job, at), tries, ", ".join(more)]


def _when(job: Job, at: datetime) -> str:
    """Since or until when, by the database's clock: short, and without a time zone."""
    if job.held:
        return f"{_short(at - job.at)} ago"
    if job.state is State.LEASED:
        started = job.lease.started_at if job.lease is not None else job.at
        return f"for {_short(at - started)}"
    if job.blocked_by is not None:
        return "blocked"
    if job.due_at <= at:
        return f"due {_short(at - job.due_at)}"
    return f"in {_short(job.due_at - at)}"


def _short(span: timedelta) -> str:
    """The larger unit only: ``59 min``."""
    return " ".join(duration(span).split()[:2])
