"""Many seeds, on one process or several, and the account of what they came to."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context

from attrs import define, evolve, field

from .profile import FAULTS
from .world import Result, simulate

CHUNK = 25


@define
class Tally:
    """What many seeds came to."""

    worlds: int = 0
    turns: int = 0
    seconds: float = 0.0
    fired: Counter[str] = field(factory=Counter[str])
    failed: list[Result] = field(factory=list[Result])

    def add(self, result: Result) -> None:
        """Count one world."""
        self.worlds += 1
        self.turns += result.turns
        self.seconds += result.seconds
        self.fired.update(result.fired)
        if result.findings:
            self.failed.append(result)

    def join(self, other: Tally) -> None:
        """Count what another process has counted."""
        self.worlds += other.worlds
        self.turns += other.turns
        self.seconds += other.seconds
        self.fired.update(other.fired)
        self.failed = sorted((*self.failed, *other.failed), key=lambda each: each.seed)

    def lines(self, took: float) -> list[str]:
        """The report: rates, how often each fault fired, and what was found."""
        rate = self.worlds / took if took else 0.0
        lines = [
            f"{self.worlds:,} worlds in {took:.0f} s ({rate:.0f} a second), {self.turns:,} turns,"
            f" {self.seconds:,.0f} virtual seconds"
        ]
        lines += [f"{self.fired[fault]:>12,}  {fault}" for fault in FAULTS]
        seen = sorted(name for name in self.fired if name not in FAULTS)
        lines += [f"{self.fired[name]:>12,}  {name}" for name in seen]
        for result in self.failed:
            lines += [f"seed {result.seed}: {finding}" for finding in result.findings]
            lines.append(f"  replay: python -m tests.simulation --seed {result.seed} --trace")
        return lines


def run(seeds: Iterable[int], jobs: int = 1, until: float = float("inf")) -> Tally:
    """Simulate ``seeds`` on ``jobs`` processes, at most until monotonic second ``until``."""
    tally = Tally()
    chunks = _chunks(seeds, until)
    if jobs == 1:
        for chunk in chunks:
            tally.join(count(chunk))
        return tally
    # A spawned process has no threads or connections of whoever started this one.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        pending: set[Future[Tally]] = {
            pool.submit(count, chunk) for chunk in islice(chunks, 2 * jobs)
        }
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for each in done:
                tally.join(each.result())
            pending |= {pool.submit(count, chunk) for chunk in islice(chunks, len(done))}
    return tally


def count(seeds: Sequence[int]) -> Tally:
    """Simulate some seeds here, without log lines; only what failed keeps its trace."""
    tally = Tally()
    logging.disable(logging.CRITICAL)
    try:
        for seed in seeds:
            result = simulate(seed)
            tally.add(result if result.findings else evolve(result, trace=()))
    finally:
        logging.disable(logging.NOTSET)
    return tally


def _chunks(seeds: Iterable[int], until: float) -> Iterator[list[int]]:
    """The seeds, a few at a time, while there is time."""
    rest = iter(seeds)
    while time.monotonic() < until and (chunk := list(islice(rest, CHUNK))):
        yield chunk
