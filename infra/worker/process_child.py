"""What a handler process does: import handlers, run one job after another, answer.

Errors are described here and results encoded here, so that nothing of the handler's own types
crosses between processes.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from itertools import count
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import FrameType

from attrs import define, field

from ...domain.errors import LeasebookError
from ...domain.job import Job
from ...domain.values import ReleaseReason
from ..app.errors import NotRunning
from ..app.registry import JobType
from ..app.run import Run
from ..app.writing import EffectCommand
from .answers import Answer, Broke, GaveBack
from .outcome import answer_for, succeeded
from .processes import Asked, Request, Told


class Stopping(BaseException):
    """Raised into the handler when its worker stops."""


@define
class Interruptible:
    """Raises Stopping on SIGTERM while a handler runs, and only then."""

    running: bool = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Called by Python in the main thread."""
        if self.running:
            self.running = False
            raise Stopping


def serve(descriptor: int, prepare: Callable[[Mapping[str, object]], None]) -> None:
    """Run jobs until the worker has gone; ``prepare`` is called with what it said first."""
    state = Interruptible()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, state.on_signal)
    connection = Connection(descriptor)
    config: dict[str, object] = pickle.loads(connection.recv_bytes())
    path = config.pop("path")
    assert isinstance(path, list)
    sys.path[:] = path
    prepare(config)
    requests: SimpleQueue[Request] = SimpleQueue()
    writer = PipeWriter(connection)

    def read() -> None:
        """A thread, so that the end of the worker ends the handler too."""
        while True:
            try:
                said: Request | Told = pickle.loads(connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            if isinstance(said, Told):
                writer.told(said)
            else:
                requests.put(said)

    threading.Thread(target=read, daemon=True).start()
    while True:
        request = requests.get()
        writer.begin(request.job)
        answer = _answer(request, state, writer)
        writer.end()
        connection.send_bytes(pickle.dumps(answer))


@define(eq=False)
class PipeWriter:
    """Implements ``Writer`` through the worker; only the run in hand may write, nobody after it."""

    _connection: Connection
    _job: Job | None = None
    _asked: dict[int, Future[Job]] = field(factory=dict[int, "Future[Job]"])
    _numbers: Iterator[int] = field(factory=count)
    _lock: threading.Lock = field(factory=threading.Lock)

    def begin(self, job: Job) -> None:
        """A run begins."""
        with self._lock:
            self._job = job

    def end(self) -> None:
        """It has ended."""
        with self._lock:
            self._job = None

    def submit(self, job: Job, command: EffectCommand) -> Future[Job]:
        """The job once the command is committed, or the error with which it was refused."""
        written: Future[Job] = Future()
        written.set_running_or_notify_cancel()
        with self._lock:
            if self._job is not job:
                raise NotRunning(job.id, "write an effect of")
            number = next(self._numbers)
            self._asked[number] = written
            self._connection.send_bytes(pickle.dumps(Asked(number, command)))
        return written

    def wait(self, written: Future[Job]) -> Job:
        """Wait in a thread of a handler."""
        return written.result()

    def told(self, told: Told) -> None:
        """The worker has answered."""
        written = self._asked.pop(told.number)
        if isinstance(told.answer, LeasebookError):
            written.set_exception(told.answer)
        else:
            written.set_result(told.answer)


def _answer(request: Request, state: Interruptible, writer: PipeWriter) -> Answer:
    try:
        handler = _handler(request)
    except BaseException as error:
        return Broke(f"the process cannot import its handler: {error!r}"[:1_000], 60.0)
    job = request.job
    try:
        state.running = True
        value = handler.invoke(Run(job, writer, handler.rows), job)
        state.running = False
        return succeeded(handler, value)
    except Stopping:
        return GaveBack(ReleaseReason.SHUTDOWN)
    except BaseException as error:
        return answer_for(error, handler, job)
    finally:
        state.running = False


def _handler(request: Request) -> JobType:
    found: object = importlib.import_module(request.module)
    for name in request.qualname.split("."):
        found = getattr(found, name)
    if not isinstance(found, JobType):
        raise TypeError(f"{request.module}.{request.qualname} is no job type but {type(found)}")
    return found
