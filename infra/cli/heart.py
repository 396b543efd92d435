"""The heartbeat child: forked by the command, or started by a worker that has threads.

``python -m leasebook.infra.cli.heart`` is the latter.
"""

from __future__ import annotations

import sys

from ..ports import Store
from ..postgres.store import PostgresStore
from ..worker.heart_fork import Forked, fork
from ..worker.heart_process import serve
from .logging import configure_logging


def _open(config: dict[str, object]) -> Store:
    configure_logging(str(config["log_format"]), str(config["log_level"]))
    return PostgresStore(
        str(config["dsn"]), schema=str(config["schema"]), application_name="leasebook heartbeat"
    )


def fork_heart() -> Forked | None:
    """The heartbeat child of a worker to come, forked; None where it has to be started."""
    return fork(lambda descriptor, parent: serve(descriptor, _open, parent))


if __name__ == "__main__":
    serve(sys.stdin.fileno(), _open)
