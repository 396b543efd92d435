"""Starts operations of queues as processes, and holds worker processes while they are measured."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .counter import VARIABLE, Counter
from .environments import TOP, Environment, environment_of
from .peers import Spec

OPERATION_SECONDS_MAX = 1_800.0
STOP_SECONDS_MAX = 10.0


def _command(spec: Spec, environment: Environment, *words: object) -> list[str]:
    given = [spec.text, *words]
    return [environment.python, "-m", "bench.peer", *map(str, given)]


def call(spec: Spec, operation: str, dsn: str, *numbers: float) -> Any:
    """The answer of one operation.

    Raises RuntimeError with what it wrote when it failed, NotInstalled when the queue is not there.
    """
    environment = environment_of(spec)
    done = subprocess.run(
        _command(spec, environment, operation, dsn, *numbers),
        capture_output=True,
        text=True,
        timeout=OPERATION_SECONDS_MAX,
        check=False,
        cwd=TOP,
        env=environment.variables,
    )
    if done.returncode:
        raise RuntimeError(f"{spec.text}: {operation} failed\n{done.stderr[-3_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Workers:
    """Worker processes, started and waiting for ``go``."""

    def __init__(self, spec: Spec, dsn: str, count: int, *, many: bool = False) -> None:
        self._spec = spec
        self._many = many
        self._environment = environment_of(spec)
        self._folder = tempfile.TemporaryDirectory(prefix="leasebook-bench-", dir=_memory())
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - stop closes it
        self.counter = Counter(Path(self._folder.name) / "counter")
        self._processes: list[subprocess.Popen[str]] = []
        try:
            for slot in range(count):
                self._processes.append(self._start(dsn, slot))
            for process in self._processes:
                assert process.stdout is not None
                if process.stdout.readline() != "ready\n":
                    raise self.failure()
        except BaseException:
            self.stop()
            raise

    def _start(self, dsn: str, slot: int) -> subprocess.Popen[str]:
        place = f"{self.counter.path}:{slot}"
        return subprocess.Popen(
            _command(self._spec, self._environment, "work", dsn, int(self._many)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=TOP,
            env={**self._environment.variables, VARIABLE: place},
        )

    @property
    def pids(self) -> Sequence[int]:
        """The processes that work."""
        return [process.pid for process in self._processes]

    def go(self) -> None:
        """Let them begin."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def check(self) -> None:
        """Raises RuntimeError with what they wrote when one has ended."""
        if any(process.poll() is not None for process in self._processes):
            raise self.failure()

    def failure(self) -> RuntimeError:
        """What the workers wrote."""
        ended = [code for each in self._processes if (code := each.poll()) is not None]
        what = f"a worker ended with {ended[0]}" if ended else "a worker is too slow, or stuck"
        self._log.flush()
        self._log.seek(0)
        return RuntimeError(f"{self._spec.text}: {what}\n{self._log.read()[-3_000:]}")

    def stop(self) -> None:
        """End them: politely, then not."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.communicate(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        self._processes.clear()
        self._log.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _memory() -> str | None:
    """A folder in memory, so that counting writes to no disk."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
