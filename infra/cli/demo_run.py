"""What the demo does: a producer, two worker processes, and a SIGKILL in the middle."""

from __future__ import annotations

import csv
import gzip
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import LiteralString
from zlib import crc32

from attrs import define, field
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from ...domain.errors import LeasebookError
from ...examples.pages import Base, PageChanged, book, page_changed
from ..postgres.connection import sorted_errors
from ..postgres.dsn import connect
from ..worker.failure import describe

SCHEMA = book.schema
EVENTS_FILE = "page-events.csv.gz"
CONCURRENCY = 28
PRODUCERS = 4
STOP_SECONDS = 10.0
LOG_CHARS_SHOWN = 1_500
WORKER_OPTIONS = ("--heartbeat", "1", "--dead-after", "5", "--log-format", "json")

LOCK: LiteralString = "select pg_catalog.pg_try_advisory_lock(7305791820457913)"
DROP: LiteralString = 'drop schema if exists "leasebook_demo" cascade'


class DemoFailed(LeasebookError):
    """The demonstration could not be carried through."""

    code = "demo_failed"


class DemoRunning(LeasebookError):
    """Another demonstration uses the schema of this database."""

    code = "demo_running"

    def __init__(self) -> None:
        super().__init__(
            "another demo runs in this database, and both would use the schema leasebook_demo. "
            "Wait until it has ended, or name another database with --dsn."
        )


def read_events(most: int | None) -> list[PageChanged]:
    """The real page events that ship with the examples, in order of time."""
    source = files("leasebook.examples").joinpath(EVENTS_FILE)
    with source.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        events = [
            PageChanged(row["page"], row["kind"], datetime.fromisoformat(row["at"])) for row in rows
        ]
    return events[:most]


@contextmanager
def fresh_schema(engine: Engine) -> Generator[None]:
    """A new schema for one demo at a time: what an earlier one left there is dropped.

    Raises DemoRunning while another demo uses it.
    """
    with connect(book.dsn) as connection:
        connection.autocommit = True
        with sorted_errors():
            locked = connection.execute(LOCK).fetchone()
            if locked != (True,):
                raise DemoRunning
            connection.execute(DROP)
        book.migrate()
        Base.metadata.create_all(engine)
        yield


@define(eq=False)
class Producers:
    """Replay the events at speed, each in its own business transaction, from a few threads.

    A page belongs to one thread, as it would to one session of its service, so that its events
    keep their order.
    """

    engine: Engine
    events: list[PageChanged]
    _failure: BaseException | None = None
    _accepted: list[int] = field(factory=lambda: [0] * PRODUCERS)
    _stop: threading.Event = field(factory=threading.Event)
    _threads: list[threading.Thread] = field(factory=list[threading.Thread])

    def start(self) -> None:
        """Begin to enqueue."""
        for number in range(PRODUCERS):
            mine = [each for each in self.events if crc32(each.path.encode()) % PRODUCERS == number]
            thread = threading.Thread(target=self._run, args=(number, mine), daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def accepted(self) -> int:
        """How many business transactions have committed.  Raises DemoFailed when one could not."""
        if self._failure is not None:
            raise DemoFailed(f"a producer failed: {describe(self._failure)}") from self._failure
        return sum(self._accepted)

    @property
    def running(self) -> bool:
        """Whether there is more to come."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """End early, after the transactions in hand."""
        self._stop.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)

    def _run(self, number: int, events: list[PageChanged]) -> None:
        try:
            for event in events:
                if self._stop.is_set():
                    return
                with Session(self.engine) as session, session.begin():
                    page_changed(session, event)
                self._accepted[number] += 1
        except BaseException as error:
            self._failure = error


@define(eq=False)
class Workers:
    """The worker processes of the demo; their logs go to files in ``folder``."""

    dsn: str
    folder: Path
    killed: str | None = None
    _processes: dict[str, subprocess.Popen[bytes]] = field(
        factory=dict[str, "subprocess.Popen[bytes]"]
    )

    def start(self, name: str) -> None:
        """Start one worker, in a session of its own: Ctrl-C is the demo's to answer."""
        module, target = "leasebook.infra.cli.demo_worker", "leasebook.examples.pages:book"
        options = ("--concurrency", str(CONCURRENCY), "--name", name, *WORKER_OPTIONS)
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                (sys.executable, "-m", module, target, *options),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LEASEBOOK_DSN": self.dsn, "LEASEBOOK_SCHEMA": SCHEMA},
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill one without any warning."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _close(process)
        self.killed = name

    def check(self) -> None:
        """Raise DemoFailed when a worker ended although nobody killed it."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise DemoFailed(
                    f"worker {name} ended with code {process.returncode}. Its log ends:\n"
                    f"{self._tail(name)}"
                )

    def stop(self) -> None:
        """Stop all: politely, then not."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close(process)
        self._processes.clear()

    def _tail(self, name: str) -> str:
        text = (self.folder / f"{name}.log").read_text("utf-8", errors="replace")
        return text[-LOG_CHARS_SHOWN:].strip() or "(it is empty)"


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
