"""Run many seeds and say what was found: ``python -m tests.simulation --help``."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from .campaign import run
from .world import simulate


def main(argv: list[str] | None = None) -> int:
    """The command line; 1 when a seed failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print its history")
    asked = parser.parse_args(argv)
    if asked.seed is not None:
        return _one(asked.seed, trace=asked.trace)
    began = time.monotonic()
    seeds = range(asked.start, asked.start + asked.seeds)
    print(f"seeds {seeds.start:,} to {seeds.stop - 1:,} on {asked.jobs} processes", flush=True)
    tally = run(seeds, asked.jobs, began + asked.seconds)
    print("\n".join(tally.lines(time.monotonic() - began)))
    return 1 if tally.failed else 0


def _one(seed: int, *, trace: bool) -> int:
    logging.disable(logging.CRITICAL)
    result = simulate(seed)
    if trace:
        print("\n".join(result.trace))
    print(f"seed {seed}: {result.turns} turns, trace {result.digest}")
    print("\n".join(result.findings) or "nothing found")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
