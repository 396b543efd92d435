"""A process for handlers: ``python -m leasebook.infra.cli.hand FD``, started by a worker."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from ..worker.process_child import serve
from .logging import configure_logging


def _prepare(config: Mapping[str, object]) -> None:
    if "log_format" in config:
        configure_logging(str(config["log_format"]), str(config["log_level"]))


if __name__ == "__main__":
    serve(int(sys.argv[1]), _prepare)
