"""Real workers, real turns: an order of keys that handlers, their own ends and kills go through."""

from __future__ import annotations

import itertools

import pytest

from tests.support.yard import Yard
from tests.worker import app, effects_app

STRANDED = "blocked job had nobody to wait for and goes on"
EFFECTS = "tests.worker.effects_app:book"


@pytest.mark.acceptance("Q14")
@pytest.mark.parametrize("how", ["", "rolled back"])
def test_a_job_that_completes_itself_lets_the_next_of_its_key_go_on(yard: Yard, how: str) -> None:
    with yard.caller() as caller:
        first = effects_app.settles.enqueue(caller, how, ordering_key="k")
        second = effects_app.settles.enqueue(caller, "", ordering_key="k")
        third = effects_app.settles.enqueue(caller, "", after=first)
    worker = yard.worker(app=EFFECTS)
    assert yard.all_over([first, second, third]) == {"done": 3}
    ends = yard.events(first)[-1].at
    for later in (second, third):
        started = next(each.at for each in yard.events(later) if each.kind == "leased")
        assert started >= ends
    assert worker.stop() == 0
    assert not worker.told(STRANDED)


@pytest.mark.acceptance("Q14")
@pytest.mark.fault
def test_a_killed_worker_does_not_disturb_the_order(yard: Yard) -> None:
    with yard.caller() as caller:
        jobs = [app.gated.enqueue(caller, "go", ordering_key="k") for _ in range(3)]
        other = app.quick.enqueue(caller, 1, ordering_key="other")
    first = yard.worker()
    yard.began(jobs[0])
    assert yard.over(other).outcome == "done"
    second = yard.worker()
    first.kill()
    yard.open("go")
    assert yard.all_over(jobs) == {"done": 3}
    lives = [yard.events(job) for job in jobs]
    for earlier, later in itertools.pairwise(lives):
        started = next(each.at for each in later if each.kind == "leased")
        assert started >= earlier[-1].at
    assert second.stop() == 0
