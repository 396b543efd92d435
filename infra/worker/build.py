"""Putting a worker together from a book."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from attrs import evolve

from ..app.book import Book
from ..app.ids import new_id
from .heart_fork import Forked
from .heart_process import ProcessHeartbeat
from .heart_thread import ThreadHeartbeat
from .processes import HandlerProcesses
from .settings import WorkerSettings
from .worker import Heartbeat, Worker

BEATS_PER_DEATH = 3
BEATS_PER_LEASE = 4
BEAT_SECONDS_MIN = 0.05
#: What the children of a worker run.  They are told the rest over a pipe.
HEART = "leasebook.infra.cli.heart"
HAND = "leasebook.infra.cli.hand"
#: What the audit log keeps of the code that a worker runs, such as a tag or a commit.
CODE_VERSION = "LEASEBOOK_CODE_VERSION"
CODE_VERSION_CHARS_MAX = 100


def build(
    book: Book,
    settings: WorkerSettings,
    name: str,
    logs: Mapping[str, object],
    *,
    drain: bool = False,
    hosted: bool = False,
    beat_in_thread: bool = False,
    forked: Forked | None = None,
) -> Worker:
    """A worker on the book's store, with its heartbeat in a child process.

    ``logs`` is ``log_format`` and ``log_level`` of the children.  ``hosted`` is for a worker inside
    another program, which nobody may kill.  ``forked`` waits to be the child; without it, and
    should it die, one is started.
    """
    # A lease is renewed by the beat, so that even the shortest must live through several.
    leases = [each.policy.lease for each in book.jobs.values()]
    beat = min([settings.heartbeat, *(lease / BEATS_PER_LEASE for lease in leases)])
    paced = evolve(settings, heartbeat=max(beat, BEAT_SECONDS_MIN))
    config = {"dsn": book.dsn, "schema": book.schema, **logs}
    command = (sys.executable, "-m", HEART)
    heartbeat: Heartbeat = ProcessHeartbeat(command, config, paced, kill=not hosted, forked=forked)
    if beat_in_thread:
        heartbeat = ThreadHeartbeat(book.store, paced)
    return Worker(
        store=book.store,
        wakeup=book.wakeup(),
        heartbeat=heartbeat,
        handlers=book.jobs,
        settings=settings,
        new_id=new_id,
        name=name,
        code_version=os.environ.get(CODE_VERSION, "")[:CODE_VERSION_CHARS_MAX],
        drain=drain,
        processes=HandlerProcesses((sys.executable, "-m", HAND), logs),
    )
