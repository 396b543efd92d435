"""What the demo does: a producer, two worker processes, and a SIGKILL in the middle."""

from __future__ import annotations

import csv
import gzip
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from zlib import crc32

from attrs import define, field
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from ...examples.pages import Base, PageChanged, book, page_changed

SCHEMA = book.schema
EVENTS_FILE = "page-events.csv.gz"
CONCURRENCY = 40
PRODUCERS = 4
#: When this share of the events is accepted, a worker is killed in mid-run.
KILL_AT = 0.4
WORKER_OPTIONS = ("--heartbeat", "1", "--dead-after", "5", "--log-format", "json")


def read_events(most: int | None) -> list[PageChanged]:
    """The real page events that ship with the examples, in order of time."""
    source = files("leasebook.examples").joinpath(EVENTS_FILE)
    with source.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        events = [
            PageChanged(row["page"], row["kind"], datetime.fromisoformat(row["at"])) for row in rows
        ]
    return events[:most]


def prepare(engine: Engine) -> None:
    """Give the demo a fresh schema of its own: what an earlier demo left there is dropped."""
    with engine.begin() as connection:
        connection.execute(text(f'drop schema if exists "{SCHEMA}" cascade'))
    book.migrate()
    Base.metadata.create_all(engine)


@define(eq=False)
class Producers:
    """Replay the events at speed, each in its own business transaction, from a few threads.

    A page belongs to one thread, as it would to one session of its service, so that its events
    keep their order.
    """

    engine: Engine
    events: list[PageChanged]
    failure: BaseException | None = None
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
        """How many business transactions have committed."""
        return sum(self._accepted)

    @property
    def running(self) -> bool:
        """Whether there is more to come."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """End early."""
        self._stop.set()

    def _run(self, number: int, events: list[PageChanged]) -> None:
        try:
            for event in events:
                if self._stop.is_set():
                    return
                with Session(self.engine) as session, session.begin():
                    page_changed(session, event)
                self._accepted[number] += 1
        except BaseException as error:
            self.failure = error


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
        """Start one worker, as anybody would from a shell."""
        command = (
            sys.executable, "-m", "leasebook.infra.cli", "worker", "leasebook.examples.pages:book",
            "--concurrency", str(CONCURRENCY), "--name", name, *WORKER_OPTIONS,
        )  # fmt: skip
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LEASEBOOK_DSN": self.dsn, "LEASEBOOK_SCHEMA": SCHEMA},
            )

    def kill(self, name: str) -> None:
        """Kill one without any warning."""
        self._processes.pop(name).send_signal(signal.SIGKILL)
        self.killed = name

    def dead(self) -> Iterator[str]:
        """Workers that ended although nobody killed them."""
        yield from (name for name, each in self._processes.items() if each.poll() is not None)

    def stop(self) -> None:
        """Stop all: politely, then not."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
