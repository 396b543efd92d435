"""Many histories of the state machines: ``python -m tests.properties --histories 1000000``."""

from __future__ import annotations

import argparse
import sys

from tests.properties.proof import MACHINES, prove
from tests.support.machines import live


def main(argv: list[str] | None = None) -> int:
    """The command line; 1 when a history broke a machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000, help="how many of each machine")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--machine", choices=MACHINES, help="this machine only")
    parser.add_argument("--seed", type=int, help="this seed only, with its traceback")
    asked = parser.parse_args(argv)
    machines = list(MACHINES) if asked.machine is None else [asked.machine]
    if asked.seed is not None:
        for machine in machines:
            live(MACHINES[machine], asked.seed)
        return 0
    seeds = range(asked.start, asked.start + asked.histories)
    failed = False
    for machine in machines:
        lines = 0
        for line in prove(machine, seeds, asked.jobs):
            print(line, flush=True)
            lines += 1
        failed = failed or lines > 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
