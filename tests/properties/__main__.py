"""The state machines with many more examples: ``python -m tests.properties --examples 20000``."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.properties.proof import MACHINES, prove


def main(argv: list[str] | None = None) -> int:
    """The command line; it fails with the shortest history that breaks a machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--examples", type=int, default=20_000, help="examples of each machine")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    asked = parser.parse_args(argv)
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        for line in pool.map(prove, MACHINES, [asked.examples] * len(MACHINES)):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
