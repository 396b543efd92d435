"""``leasebook status``: one word about a job, for those who do not operate the queue."""

from __future__ import annotations

from uuid import UUID

import click

from .options import connection_options, plain_book
from .output import FINDING, answering, finish, print_json


@click.command()
@click.argument("job", type=click.UUID)
@connection_options
def status(job: UUID, dsn: str | None, schema: str, as_json: bool) -> None:
    """Say queued, processing, succeeded or failed; exit 1 when there is no such job.

    The answer stays when the history of the job is pruned.
    """
    with answering(as_json=as_json), plain_book(dsn, schema) as book:
        found = book.status(None, job)
    if as_json:
        print_json({"job": job, "status": found})
    elif found is not None:
        click.echo(found)
    else:
        click.echo(f"leasebook: no job {job} is in this log", err=True)
    finish(FINDING if found is None else 0)
