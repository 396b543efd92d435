"""One state machine with as many examples as there is time for."""

from __future__ import annotations

import time

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
