"""A checker that has never caught anything proves nothing: it must catch every planted bug."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator

import pytest

from tests.simulation.sabotage.rules import Planted
from tests.simulation.sabotage.twins import TWINS
from tests.simulation.world import simulate

SEEDS_MAX = 2_000


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.acceptance("E06")
@pytest.mark.parametrize("plant", TWINS, ids=lambda plant: plant.__name__)
def test_every_planted_bug_is_caught(plant: Callable[[], Planted]) -> None:
    focus = TWINS[plant]
    for seed in range(SEEDS_MAX):
        findings = simulate(seed, plant(), focus).findings
        if findings:
            assert not simulate(seed, None, focus).findings, f"seed {seed} fails without the bug"
            print(f"caught by seed {seed}: {findings[0]}")
            return
    pytest.fail(f"not caught in {SEEDS_MAX} worlds: {plant.__doc__}")
