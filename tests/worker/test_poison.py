"""One job that kills its worker, and two hundred innocents beside it."""

from __future__ import annotations

import pytest

from tests.support.yard import Yard
from tests.worker import app

INNOCENTS = 200


@pytest.mark.fault
@pytest.mark.acceptance("Q13")
@pytest.mark.parametrize(
    ("poison", "innocent"),
    [("deadly", "innocent"), ("deadly_thread", "innocent_thread")],
)
def test_q13_a_poison_job_does_not_stop_others(yard: Yard, poison: str, innocent: str) -> None:
    with yard.caller() as caller:
        killer = app.book.enqueue(caller, poison, {})
        innocents = [app.book.enqueue(caller, innocent, {}) for _ in range(INNOCENTS)]
    deaths = 0
    while True:
        worker = yard.worker("--concurrency", "25", "--drain")
        if worker.ended() == 0:
            break
        deaths += 1
        assert deaths <= 5
    assert yard.all_over(innocents) == {"done": INNOCENTS}
    job = yard.job(killer)
    assert (job.state, job.outcome) == ("failed", "lost")
    assert len(yard.effects(killer)) == deaths == job.spec.policy.retries + 1
