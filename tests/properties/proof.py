"""The state machines in a plain seeded loop: as many histories as there is time for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

from hypothesis.stateful import RuleBasedStateMachine

from tests.domain.test_group_machine import Groups
from tests.domain.test_lease_machine import Leases
from tests.properties.test_budget_machine import Budgets
from tests.support.machines import Broken, live

CHUNK = 250
MACHINES: dict[str, type[RuleBasedStateMachine]] = {
    each.__name__: each for each in (Leases, Groups, Budgets)
}


def prove(machine: str, seeds: range, jobs: int = 1) -> Iterator[str]:
    """Live the histories of ``seeds`` on ``jobs`` processes.

    Yields each that breaks the machine, with all of its steps, and in the end how long it took.
    """
    began, broken = time.monotonic(), 0
    chunks = [seeds[first : first + CHUNK] for first in range(0, len(seeds), CHUNK)]
    # A spawned process has no threads or connections of whoever started this one.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for found in pool.map(broken_of, repeat(machine), chunks):
            broken += len(found)
            yield from found
    took = time.monotonic() - began
    yield f"{machine}: {len(seeds):,} histories in {took:.0f} s, {broken} broken"


def broken_of(machine: str, seeds: range) -> list[str]:
    """The histories among ``seeds`` that break a machine."""
    found: list[str] = []
    for seed in seeds:
        try:
            live(MACHINES[machine], seed)
        except Broken as broken:
            replay = f"replay: python -m tests.properties --machine {machine} --seed {seed}"
            found.append(f"{broken}\n{replay}")
    return found
