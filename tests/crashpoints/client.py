"""A client process: a fork that does one thing, says what it believes came of it, and ends."""

from __future__ import annotations

import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from .passage import Passage

#: Nothing here takes a second; whoever is not heard of for so long will not be.
PATIENCE_SECONDS = 30.0


class Client:
    """Forked from the test, which has everything imported, so that a hundred of them are cheap.

    The parent's connections are never touched in it: it ends without unwinding.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            _live(act, writer)
        os.close(writer)
        self._reader = reader
        self._gone = False

    def kill(self) -> None:
        """SIGKILL; it is gone when this returns."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def use(self, passage: Passage) -> Any:
        """Serve it until it ends; what it said, None when it was killed before it could."""
        watched: list[Any] = [passage.door, self._reader]
        try:
            while True:
                ready, _, _ = select.select(watched, [], [], PATIENCE_SECONDS)
                assert ready, f"the client is stuck after {passage.statements[-1:]}"
                if self._reader in ready:
                    return self._heard()
                passage.serve()
        finally:
            if not self._gone:
                self.kill()
            os.close(self._reader)

    def _heard(self) -> Any:
        with os.fdopen(os.dup(self._reader), "rb") as pipe:
            said = pipe.read()
        if not said:
            return None
        trouble, value = pickle.loads(said)
        assert trouble is None, f"the client broke:\n{trouble}"
        self._wait()
        return value

    def _wait(self) -> None:
        if not self._gone:
            os.waitpid(self.pid, 0)
            self._gone = True


def _live(act: Callable[[], object], writer: int) -> NoReturn:
    try:
        try:
            said: tuple[str | None, object] = (None, act())
        except BaseException:
            said = (traceback.format_exc(), None)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(said))
    finally:
        os._exit(0)
