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
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import FrameType

from attrs import define

from ...domain.values import ReleaseReason
from ..app.registry import JobType
from ..app.run import Run
from .answers import Answer, Broke, GaveBack
from .outcome import answer_for, succeeded
from .processes import Request


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

    def read() -> None:
        """A thread, so that the end of the worker ends the handler too."""
        while True:
            try:
                requests.put(pickle.loads(connection.recv_bytes()))
            except (EOFError, OSError):
                os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        connection.send_bytes(pickle.dumps(_answer(requests.get(), state)))


def _answer(request: Request, state: Interruptible) -> Answer:
    try:
        handler = _handler(request)
    except BaseException as error:
        return Broke(f"the process cannot import its handler: {error!r}"[:1_000], 60.0)
    job = request.job
    try:
        state.running = True
        value = handler.invoke(Run(job), job)
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
