"""The heartbeat child: ``python -m leasebook.infra.cli.heart``, started by a worker."""

from __future__ import annotations

import sys

from ..ports import Store
from ..postgres.store import PostgresStore
from ..worker.heart_process import serve
from .logging import configure_logging


def _open(config: dict[str, object]) -> Store:
    configure_logging(str(config["log_format"]), str(config["log_level"]))
    return PostgresStore(
        str(config["dsn"]), schema=str(config["schema"]), application_name="leasebook heartbeat"
    )


if __name__ == "__main__":
    serve(sys.stdin.fileno(), _open)
