"""``leasebook worker``."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys

import click

from ..app.book import Book
from ..app.ids import new_id
from ..postgres.dsn import connect
from ..postgres.schema.check import require_schema
from ..postgres.schema.name import Schema
from ..worker.heart_process import ProcessHeartbeat
from ..worker.settings import WorkerSettings
from ..worker.worker import Worker
from .logging import configure_logging
from .options import book_schema_option, dsn_option, load_book
from .output import answering

DEFAULTS = WorkerSettings()


@click.command()
@click.argument("target", metavar="MODULE:BOOK")
@dsn_option
@book_schema_option
@click.option(
    "--concurrency", default=DEFAULTS.concurrency, show_default=True, help="Runs at once."
)
@click.option("--queue", "queues", multiple=True, help="Serve this queue only; may be repeated.")
@click.option("--drain", is_flag=True, help="Work off what is due, then stop.")
@click.option("--name", default=socket.gethostname, help="Name in logs and histories.")
@click.option("--poll", default=DEFAULTS.poll, show_default=True, help="Seconds between looks.")
@click.option("--heartbeat", default=DEFAULTS.heartbeat, show_default=True, help="Seconds.")
@click.option("--dead-after", default=DEFAULTS.dead_after, show_default=True, help="Seconds.")
@click.option("--no-death-detection", is_flag=True, help="Leave the dead to the end of leases.")
@click.option(
    "--grace", default=DEFAULTS.drain, show_default=True, help="Seconds to finish at stop."
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="The same as --log-format json.")
@click.option("--log-level", default="info", show_default=True)
def worker(
    target: str,
    dsn: str | None,
    schema: str | None,
    concurrency: int,
    queues: tuple[str, ...],
    drain: bool,
    name: str,
    poll: float,
    heartbeat: float,
    dead_after: float,
    no_death_detection: bool,
    grace: float,
    log_format: str,
    as_json: bool,
    log_level: str,
) -> None:
    """Run the handlers of the book that MODULE:BOOK names, such as app:book.

    Stops on SIGTERM and SIGINT: running handlers get --grace seconds. A second signal stops now.
    """
    log_format = "json" if as_json else log_format
    configure_logging(log_format, log_level)
    settings = WorkerSettings(
        concurrency=concurrency,
        queues=queues,
        poll=poll,
        heartbeat=heartbeat,
        dead_after=dead_after,
        death_detection=not no_death_detection,
        drain=grace,
    )
    with answering(), load_book(target, dsn, schema) as book:
        with connect(book.dsn) as connection:
            require_schema(connection, Schema(book.schema))
        config: dict[str, object] = {
            "dsn": book.dsn,
            "schema": book.schema,
            "log_format": log_format,
            "log_level": log_level,
        }
        asyncio.run(_run(build(book, settings, name, config, drain=drain)))


def build(
    book: Book, settings: WorkerSettings, name: str, config: dict[str, object], *, drain: bool
) -> Worker:
    """A worker on the book's store, with its heartbeat in a child process."""
    command = (sys.executable, "-m", "leasebook.infra.cli.heart")
    return Worker(
        store=book.store,
        wakeup=book.wakeup(),
        heartbeat=ProcessHeartbeat(command, config, settings),
        handlers=book.jobs,
        settings=settings,
        new_id=new_id,
        name=name,
        drain=drain,
    )


async def _run(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    await worker.run()
