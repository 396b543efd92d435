"""``leasebook worker``."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType

import click
from attrs import define

from ...domain.errors import InvalidValue
from ...domain.limits import check_seconds
from ..postgres.dsn import connect
from ..postgres.pooler import is_pooled
from ..postgres.schema.check import require_schema
from ..postgres.schema.name import Schema
from ..worker.build import BEATS_PER_DEATH, build
from ..worker.heart_process import INTERRUPTION
from ..worker.logs import log
from ..worker.settings import WorkerSettings
from ..worker.worker import Worker
from .heart import fork_heart
from .logging import configure_logging
from .options import book_schema_option, dsn_option, load_book
from .output import INTERRUPTED, UNAVAILABLE, answering, finish

DEFAULTS = WorkerSettings()
#: New objects between two looks of the garbage collector; Python's own 700 suits small programs.
GARBAGE_OBJECTS = 20_000
SECONDS_MAX = 86_400.0
SIGNALS_MAX = 3
#: What cancelled tasks and, later, threads may take to end after the worker has stopped.
TASK_SECONDS = 1.0
EXIT_SECONDS = 3.0


def _seconds(
    name: str, default: float, text: str, least: float = 0.01
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option in seconds.  (A range of click's lets NaN through.)"""

    def checked(context: click.Context, parameter: click.Parameter, value: float) -> float:
        try:
            return check_seconds(name, value, least=least, most=SECONDS_MAX)
        except InvalidValue as error:
            raise click.BadParameter(str(error)) from None

    return click.option(
        name, type=float, callback=checked, default=default, show_default=True, help=text
    )


@click.command()
@click.argument("target", metavar="MODULE:BOOK")
@dsn_option
@book_schema_option
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=DEFAULTS.concurrency,
    show_default=True,
    help="Runs at once.",
)
@click.option("--queue", "queues", multiple=True, help="Serve this queue only; may be repeated.")
@click.option("--drain", is_flag=True, help="Work off what is due, then stop.")
@click.option("--name", default=socket.gethostname, help="Name in logs and histories.")
@_seconds("--poll", DEFAULTS.poll, "Seconds between looks.")
@_seconds("--heartbeat", DEFAULTS.heartbeat, "Seconds between beats.")
@_seconds("--dead-after", DEFAULTS.dead_after, "Seconds without a beat.")
@click.option("--no-death-detection", is_flag=True, help="Leave the dead to the end of leases.")
@_seconds("--grace", DEFAULTS.drain, "Seconds to finish at stop.", least=0.0)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="The same as --log-format json.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error", "critical"], case_sensitive=False),
    default="info",
    show_default=True,
)
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

    Stops on SIGTERM and SIGINT: running handlers get --grace seconds, then 5 to clean up; with the
    default the whole stop ends within 45 seconds. A second signal stops now, a third ends the
    process at once.
    """
    if not no_death_detection and dead_after < BEATS_PER_DEATH * heartbeat:
        raise click.UsageError(
            f"--dead-after {dead_after:g} is less than three times --heartbeat {heartbeat:g}, so "
            "that one late beat would count as a death. Raise it, or give --no-death-detection."
        )
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
    # Before the application is imported, which may have threads.
    forked = fork_heart()
    with answering(), load_book(target, dsn, schema) as book:
        with connect(book.dsn) as connection:
            require_schema(connection, Schema(book.schema))
            if is_pooled(connection):
                log.warning("database behind a pooler; no wake-ups, polling only", poll=poll)
        logs: dict[str, object] = {"log_format": log_format, "log_level": log_level}
        _spare_collector()
        clean = serve(build(book, settings, name, logs, drain=drain, forked=forked))
        code = 0 if clean else UNAVAILABLE
        leave_within(EXIT_SECONDS, code)
        finish(code)


def _spare_collector() -> None:
    """Let the garbage collector leave alone what was imported, and look less often at the rest.

    A batch makes thousands of objects that live until its tick; walked again and again, with all
    of the application beside them, they took a fifth of a busy worker's time.  (There is next to no
    garbage yet: to look for it first would take 20 ms and find a few dozen objects.)
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)


def serve(worker: Worker) -> bool:
    """Run the worker on a loop of its own until it has stopped; whether all was recorded.

    ``asyncio.run`` would wait for tasks that swallow their cancellation, for ever perhaps.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    signals = Signals(loop, worker)
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signals.on_signal)
        signal.signal(INTERRUPTION, signals.on_interruption)
        worker.unblock = partial(signal.pthread_kill, threading.get_ident(), INTERRUPTION)
        return loop.run_until_complete(worker.run())
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=TASK_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
        if all(task.done() for task in left):
            loop.close()


@define
class Signals:
    """Counts the signals to stop: finish what runs, stop now, and at last end without a word.

    The third is for a handler that blocks the loop, so that nobody could answer the first two.  So
    that a stop is over in time without it, the system's own alarm ends the process when the time of
    the stop is up: it needs no thread, and asks no handler.  Either way the heartbeat child then
    ends the leases, as after any death.
    """

    loop: asyncio.AbstractEventLoop
    worker: Worker
    count: int = 0

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Called by Python in the main thread, also while a handler blocks the loop there."""
        self.count += 1
        if self.count >= SIGNALS_MAX:
            os._exit(INTERRUPTED)
        settings = self.worker.settings
        seconds = settings.stop_seconds if self.count == 1 else settings.stop_now_seconds
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.worker.stop)

    def on_interruption(self, number: int, frame: FrameType | None) -> None:
        """Asked for by the worker, or its heartbeat child, when the loop stands still."""
        self.worker.break_in()


def leave_within(seconds: float, code: int) -> None:
    """End the process with ``code`` in ``seconds`` if it does not end by itself.

    Handlers may have left threads that Python waits for at its exit, and that never end.
    """
    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()
