"""The state machines with many more examples: ``python -m tests.properties --examples 20000``."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.domain.test_group_machine import Groups
from tests.domain.test_lease_machine import Leases
from tests.properties.test_budget_machine import Budgets

MACHINES: tuple[type[RuleBasedStateMachine], ...] = (Leases, Groups, Budgets)


def prove(machine: type[RuleBasedStateMachine], examples: int) -> str:
    """Run one machine; raises what it found.  Returns a line about how long it took."""
    began = time.monotonic()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    took = time.monotonic() - began
    return f"{machine.__name__}: {examples:,} examples in {took:.0f} s"


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
