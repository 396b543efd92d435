"""Graphile Worker, for Node: 24 jobs at once from a local queue of 500, acknowledged in batches.

``graphile.mjs`` beside this file is its other half.  A worker process becomes Node by exec, so that
it keeps its pid.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from .. import counter
from .base import Peer

SCRIPT = Path(__file__).with_suffix(".mjs")
#: Where bench.environments put what npm installed.
VARIABLE = "LEASEBOOK_BENCH_NODE"


class Graphile(Peer):
    """See ``base.Peer``.  ``batch`` is the size of its local queue."""

    PENDING: ClassVar[str] = (
        "select exists (select from graphile_worker._private_jobs where run_at <= now())"
    )
    LACKS: ClassVar = {"hot": "it has no groups", "idle": "a worker has no queues to choose from"}

    def _command(self, *words: object) -> list[str]:
        modules = Path(os.environ[VARIABLE])
        node = modules / "node" / "bin" / "node"
        return [str(each) for each in (node, SCRIPT, modules, self.dsn, *words)]

    def _call(self, *words: object) -> Any:
        done = subprocess.run(self._command(*words), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def setup(self) -> None:
        """Its migrations."""
        self._call("setup")

    def bulk(self, jobs: int) -> float:
        """Its SQL function for many, as its own performance test does."""
        return float(self._call("bulk", jobs))

    def single(self, jobs: int) -> float:
        """Its SQL function."""
        return float(self._call("single", jobs))

    def paced(self, jobs: int, gap: float) -> None:
        """A trigger notifies its workers."""
        self._call("paced", jobs, gap)

    def finished(self, jobs: int) -> None:
        """It deletes finished jobs."""

    def delayed(self, jobs: int) -> None:
        """Due tomorrow."""
        self._call("delayed", jobs)

    def prepare(self) -> None:
        """Become Node, which imports, says that it is ready, and works."""
        path, _, slot = os.environ[counter.VARIABLE].rpartition(":")
        place = counter.noted_at(int(slot))
        command = self._command("work", self.batch, path, slot, place, counter.KEPT)
        os.execv(command[0], command)
