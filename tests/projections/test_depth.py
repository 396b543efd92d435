"""What counts as due and in flight, for every kind of job there can be."""

from __future__ import annotations

from itertools import product

import pytest

from leasebook.domain.states import UNFINISHED, State
from leasebook.projections.depth import DUE_ALARM, Depth, Tally, depth

KINDS = list(product(sorted(UNFINISHED), (False, True), (False, True)))


@pytest.mark.acceptance("A09")
@pytest.mark.parametrize(("state", "reached", "stopped"), KINDS)
def test_every_kind_of_job(state: State, reached: bool, stopped: bool) -> None:
    counted = depth([Tally(state, False, reached, 3, stopped)], items=0)
    if reached:
        # Ready to run, also because its lease has expired; unless it may not start.
        due, in_flight = 0 if stopped else 3, 0
    elif state is State.LEASED:
        due, in_flight = 0, 3
    elif state is State.RETRY_WAIT:
        due, in_flight = 0, 0 if stopped else 3
    else:
        due, in_flight = 0, 0
    assert counted == Depth(due, in_flight, 3, 3 if stopped else 0)


@pytest.mark.acceptance("A09")
def test_held_jobs_count_nowhere_and_items_in_the_total() -> None:
    held = Tally(State.FAILED, True, True, 5)
    assert depth([held, Tally(State.QUEUED, False, True, 2)], items=7) == Depth(2, 0, 9)


@pytest.mark.acceptance("A09")
def test_a_held_job_may_wait_for_another_too() -> None:
    assert depth([Tally(State.FAILED, True, True, 5, stopped=True)], items=0) == Depth(0, 0, 0, 5)


@pytest.mark.acceptance("A09")
def test_the_alarm_is_above_ten_thousand() -> None:
    assert not Depth(10_000, 0, 10_000).alarming
    assert Depth(DUE_ALARM + 1, 0, DUE_ALARM + 1).alarming
