"""Twenty thousand histories of each state machine, and bugs that each of them must catch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from leasebook.domain import Group, grouping
from leasebook.domain.decide import birth
from tests.plugins.beside import Said
from tests.properties.proof import MACHINES
from tests.simulation.sabotage import rules
from tests.simulation.sabotage.rules import Planted
from tests.support.machines import Broken, live

START = os.environ.get("LEASEBOOK_PROPERTIES_START", "0")
HISTORIES = 20_000
SEEDS_MAX = 500


@pytest.mark.slow
@pytest.mark.acceptance("E05")
@pytest.mark.beside("-m", "tests.properties", "--start", START, "--histories", str(HISTORIES))
@pytest.mark.timeout(900)
def test_no_history_breaks_a_machine(beside: Callable[[], Said]) -> None:
    """Always the same seeds; LEASEBOOK_PROPERTIES_START=20000 tries others."""
    code, told = beside()
    print(told)
    assert code == 0, told
    assert all(machine in told for machine in MACHINES)


def overfull_groups() -> Planted:
    """A group takes one item more than it may."""
    head = grouping._head  # pyright: ignore[reportPrivateUsage]

    def fuller(items: Sequence[Any], owner: str | None, most: int) -> tuple[Any, ...]:
        return head(items, owner, most + 1)

    return patch.object(grouping, "_head", fuller)


def held_too_long() -> Planted:
    """Items that keep coming postpone their group, however long the first one has waited."""

    def far(group: Group, first_item_at: datetime) -> datetime:
        return first_item_at + timedelta(days=1)

    return patch.object(birth, "hold_until", far)


PLANTED: dict[Callable[[], Planted], str] = {
    rules.no_fencing: "Leases",
    rules.token_resets: "Leases",
    rules.renews_past_time_out: "Leases",
    rules.expiry_is_free: "Budgets",
    rules.retry_ignores_budget: "Budgets",
    overfull_groups: "Groups",
    held_too_long: "Groups",
}


@pytest.mark.acceptance("E05")
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_machine_catches_what_is_planted(plant: Callable[[], Planted]) -> None:
    machine = MACHINES[PLANTED[plant]]
    for seed in range(SEEDS_MAX):
        try:
            with plant():
                live(machine, seed)
        except Broken as broken:
            print(f"caught by seed {seed}: {str(broken).splitlines()[0]}")
            return
    pytest.fail(f"not caught in {SEEDS_MAX} histories: {plant.__doc__}")
