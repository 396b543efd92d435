"""The options of a worker inside another program, and their checks."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

from ...domain.errors import InvalidValue
from ...domain.limits import check_count, check_seconds
from ..app.book import Book
from ..app.options import check_known
from .build import BEATS_PER_DEATH, build
from .hosted import HostedWorker
from .settings import WorkerSettings
from .worker import Worker

CONCURRENCY_MAX = 10_000
LOGS = {"log_format": "text", "log_level": "info"}


class HostedOptions(TypedDict, total=False):
    """What ``book.worker`` takes beside the usual; times are seconds."""

    name: str
    poll: float
    heartbeat: float
    dead_after: float
    heartbeat_in: Literal["process", "thread"]


def hosted(
    book: Book,
    concurrency: int,
    queues: tuple[str, ...],
    grace: float,
    options: HostedOptions,
) -> HostedWorker:
    """A worker for ``async with``.  Raises InvalidValue for an option."""
    check_known(options, HostedOptions.__annotations__)
    given = cast(Mapping[str, Any], options)
    usual = WorkerSettings()
    times = {
        name: check_seconds(name, given.get(name, getattr(usual, name)), least=0.01)
        for name in ("poll", "heartbeat", "dead_after")
    }
    if times["dead_after"] < BEATS_PER_DEATH * times["heartbeat"]:
        raise InvalidValue(
            "dead_after",
            f"{times['dead_after']:g}",
            "give at least three times the heartbeat, so that one late beat is no death",
        )
    where = given.get("heartbeat_in", "process")
    if where not in ("process", "thread"):
        raise InvalidValue("heartbeat_in", str(where)[:60], 'give "process" or "thread"')
    settings = WorkerSettings(
        concurrency=check_count("concurrency", concurrency, least=1, most=CONCURRENCY_MAX),
        queues=queues,
        drain=check_seconds("grace", grace, least=0.0),
        poll=times["poll"],
        heartbeat=times["heartbeat"],
        dead_after=times["dead_after"],
    )
    name = str(given.get("name") or socket.gethostname())

    def make() -> Worker:
        book.require_schema()
        in_thread = where == "thread"
        return build(book, settings, name, LOGS, hosted=True, beat_in_thread=in_thread)

    return HostedWorker(make)
