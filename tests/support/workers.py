"""Real worker processes, watched through their log, their database and their signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any, TypeAlias, TypeVar

from tests.support.source import TOP

T = TypeVar("T")
Line: TypeAlias = dict[str, Any]

DEADLINE_SECONDS = 30.0
PAUSE_SECONDS = 0.01
ARTIFACTS = TOP / "artifacts" / "acceptance"
STARTED = "worker started"
HEART_STARTED = "heartbeat child started"

#: What a clean worker never writes.
ALARMS = ("critical",)


def eventually(ask: Callable[[], T], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """Ask until the answer is true, and give it.

    Raises AssertionError naming ``what``, with the last answer, after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what} (last: {answer!r})"
        time.sleep(PAUSE_SECONDS)  # tidy: the pause of a poll with a deadline
    return answer


def running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class WorkerProcess:
    """``leasebook worker`` on a book, with its log lines as they come.

    ``folder`` is what handlers share with the test: gates are files in it.
    """

    def __init__(self, dsn: str, folder: Path, app: str, name: str, options: Sequence[str]) -> None:
        self.name = name
        self.raw: list[str] = []
        self.lines: list[Line] = []
        self._changed = Condition()
        command = (
            *(sys.executable, "-m", "leasebook.infra.cli", "worker", app, "--name", name),
            *("--log-format", "json", "--log-level", "debug", *options),
        )
        search = os.pathsep.join([str(TOP), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "LEASEBOOK_DSN": dsn,
                "LEASEBOOK_TEST_FOLDER": str(folder),
                "PYTHONPATH": search,
            },
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The worker's own process id."""
        return self.process.pid

    @property
    def id(self) -> str:
        """The id under which it enrolled, of its newest start."""
        return str(self.told(STARTED)[-1]["worker"])

    @property
    def heart(self) -> int:
        """The process id of its heartbeat child."""
        return int(self.told(HEART_STARTED)[-1]["pid"])

    def told(self, event: str, **facts: object) -> list[Line]:
        """The lines so far whose event begins so and that carry these facts."""
        with self._changed:
            return [
                line
                for line in self.lines
                if str(line.get("event", "")).startswith(event)
                and all(line.get(name) == value for name, value in facts.items())
            ]

    def tells(self, event: str, **facts: object) -> Line:
        """Wait for such a line and give the first."""
        what = f"{self.name} logs {event!r} {facts or ''}"
        deadline = time.monotonic() + DEADLINE_SECONDS
        with self._changed:
            while not (found := self.told(event, **facts)):
                left = deadline - time.monotonic()
                assert left > 0, f"not within {DEADLINE_SECONDS:g} s: {what}; {self.tail()}"
                assert self._reader.is_alive(), f"it ended: {what}; {self.tail()}"
                self._changed.wait(min(left, 0.2))
        return found[0]

    def tail(self) -> str:
        """The end of its log, for messages."""
        return "log ends:\n" + "".join(self.raw[-8:])

    def signal(self, number: signal.Signals, *, heart: bool = False) -> None:
        """Send a signal to the worker, and to its heartbeat child too."""
        for pid in (self.pid, *([self.heart] if heart else [])):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, *, heart: bool = False) -> None:
        """SIGKILL, and wait until it is gone."""
        heart_pid = self.heart
        self.signal(signal.SIGKILL, heart=heart)
        self.process.wait(DEADLINE_SECONDS)
        if heart:
            eventually(lambda: not running(heart_pid), "the heartbeat child is gone")

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Wait for its end by itself; the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end; {self.tail()}") from None

    def finish(self, test: str, secrets: Sequence[str]) -> None:
        """Kill what is left, and keep the log, without names of this machine, as an artifact."""
        hearts = [int(line["pid"]) for line in self.told(HEART_STARTED)]
        for pid in (self.pid, *hearts):
            if pid == self.pid and self.process.poll() is not None:
                continue
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(5.0)
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        text = "".join(self.raw)
        for secret in secrets:
            text = text.replace(secret, "…")
        name = re.sub(r"[^\w.-]+", "-", f"{test}-{self.name}")[:150]
        (ARTIFACTS / f"{name}.log").write_text(text, "utf-8")

    def alarms(self) -> list[str]:
        """Lines that no worker should write: what is no JSON, and what it could not handle."""
        return [
            line
            for line, parsed in zip(self.raw, self.lines, strict=True)
            if parsed.get("level") in ALARMS or not parsed or "exception" in parsed
        ]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            text = raw.decode("utf-8", "backslashreplace")
            try:
                line: Line = json.loads(text)
            except ValueError:
                line = {}
            with self._changed:
                self.raw.append(text)
                self.lines.append(line)
                self._changed.notify_all()
