"""The same random walk on both stores: every answer, every row and every event is the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .ground import Ground
from .making import now
from .memory_ground import MemoryGround
from .twins import Twins

DIGIT = st.integers(0, 9)
OFTEN = ("enqueue", "claim", "end")
NAMES = st.sampled_from((*OFTEN, *OFTEN, "arrive", "collect", "repeat", "close", "expire", "bury"))
UNDO = st.sampled_from([False] * 5 + [True])
STEPS = st.lists(st.tuples(NAMES, DIGIT, DIGIT, UNDO), min_size=40, max_size=80)


@pytest.mark.acceptance("E04", "Q10")
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_both_stores_walk_the_same_way(
    postgres_ground: Ground, steps: list[tuple[str, int, int, bool]]
) -> None:
    postgres_ground.reset()
    twins = Twins([MemoryGround(), postgres_ground], now(postgres_ground.store()))
    for step in steps:
        twins.step(*step)
    twins.finish()
