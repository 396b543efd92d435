"""Processes for handlers that compute: each runs one job at a time, and can be killed.

A process is a child that is told over a socket which handler to import and which job to run, and
answers how the run ended.  Idle ones are used again.  One that dies, whatever killed it, takes
nothing with it but its own run.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from attrs import define, field, frozen

from ...domain.errors import LeasebookError
from ...domain.job import Job
from ..app.registry import JobType
from ..app.writing import EffectCommand, Writer
from .answers import NO_ROOM, Answer, Broke
from .logs import log


@frozen
class Request:
    """What a process is to run: the handler as others import it, and the job as it was leased."""

    module: str
    qualname: str
    job: Job


@frozen
class Asked:
    """What a handler in a process has to write; ``number`` tells its questions apart."""

    number: int
    command: EffectCommand


@frozen
class Told:
    """The answer: the job after, or the error."""

    number: int
    answer: Job | LeasebookError


class HandlerProcess:
    """One child.  Its own session, so that a Ctrl-C at the terminal is the worker's to answer."""

    def __init__(self, command: Sequence[str], config: Mapping[str, object]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                (*command, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        log.debug("handler process started", pid=self._process.pid)
        self._connection.send_bytes(pickle.dumps({**config, "path": sys.path}))

    @property
    def alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.poll() is None

    def ask(self, request: bytes, write: Callable[[EffectCommand], Job]) -> Answer:
        """Run a job, write for it, and wait for its end.

        Raises EOFError or OSError when the process dies.
        """
        self._connection.send_bytes(request)
        while True:
            said: Answer | Asked = pickle.loads(self._connection.recv_bytes())
            if not isinstance(said, Asked):
                return said
            try:
                answer: Job | LeasebookError = write(said.command)
            except LeasebookError as error:
                answer = error
            self._connection.send_bytes(pickle.dumps(Told(said.number, answer)))

    def terminate(self) -> None:
        """Ask the handler to end: an exception is raised in it."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """End it and what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def buried(self) -> str:
        """How it ended, waited for, in words."""
        self._connection.close()
        self.kill()
        code = self._process.wait()
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def close(self) -> None:
        """Let it end: it does when nobody is left to ask."""
        self._connection.close()


@define(eq=False)
class ProcessCall:
    """One run in a process.  Any thread may kill it, before it began and after it ended."""

    pool: HandlerProcesses
    handler: JobType
    job: Job
    writer: Writer
    _process: HandlerProcess | None = None
    _killed: bool = False
    _lock: threading.Lock = field(factory=threading.Lock)

    def run(self) -> Answer | None:
        """How the run ended; None when it was killed."""
        function = self.handler.handler
        request = pickle.dumps(Request(function.__module__, function.__qualname__, self.job))
        try:
            process = self.pool.take()
        except OSError:  # the system may start no more processes
            return NO_ROOM
        with self._lock:
            if self._killed:
                self.pool.give(process)
                return None
            self._process = process
        try:
            answer = process.ask(request, self._write)
        except (EOFError, OSError):
            answer = None
        with self._lock:
            self._process, killed = None, self._killed
        if answer is not None and not killed:
            self.pool.give(process)
            return answer
        how = process.buried()
        if killed:
            return None
        delay = self.handler.retry.seconds(self.job.id, self.job.attempts + 1)
        error = f"HandlerProcessDied: the process of this run ended with {how}"
        return Broke(error, delay, interrupted=True)

    def _write(self, command: EffectCommand) -> Job:
        return self.writer.wait(self.writer.submit(self.job, command))

    def terminate(self) -> None:
        """Ask the handler to end."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()

    def kill(self) -> None:
        """End the run now."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()


@define(eq=False)
class HandlerProcesses:
    """As many processes as are needed at once; ``command`` is run and first told ``config``."""

    command: Sequence[str]
    config: Mapping[str, object]
    _idle: list[HandlerProcess] = field(factory=list[HandlerProcess])
    _closed: bool = False
    _lock: threading.Lock = field(factory=threading.Lock)

    def take(self) -> HandlerProcess:
        """An idle process, or a new one.  Raises OSError."""
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None:
                return HandlerProcess(self.command, self.config)
            if process.alive:
                return process
            process.buried()

    def give(self, process: HandlerProcess) -> None:
        """Take back a process that is idle again."""
        with self._lock:
            if not self._closed:
                self._idle.append(process)
                return
        process.close()

    def close(self) -> None:
        """Let the idle ones end."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for process in idle:
            process.close()
