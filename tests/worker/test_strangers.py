"""Which jobs a worker's claims go past when some due ones are not for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from leasebook.domain.job import Job
from leasebook.infra.memory import MemoryStore
from leasebook.infra.worker.tick import Ticker
from tests.conformance.making import enqueue, new_spec

from .ticking import due, leased, tick, ticker

pytestmark = pytest.mark.acceptance("A12")
NOW = timedelta(0)


@pytest.fixture
def store() -> MemoryStore:
    """A queue whose head is 30 jobs of a name that nobody here knows."""
    made = MemoryStore(lambda: datetime.now(UTC))
    enqueue(made, *(new_spec(900 + n, name="stranger") for n in range(30)))
    return made


def drained(one: Ticker, slots: int = 10) -> tuple[list[Job], int]:
    """Everything that ticks lease while they expect more, and how many ticks that took."""
    jobs: list[Job] = []
    for count in range(1, 50):
        ticked = tick(one, slots=slots)
        jobs += ticked.leased
        if not ticked.more:
            return jobs, count
    raise AssertionError("it never comes to rest")


def test_a_look_tells_of_them(store: MemoryStore) -> None:
    told = store.outlook(("default",), ("work",), sample=10).strangers
    assert [(each.name, each.format) for each in told] == [("stranger", None)]
    assert store.outlook(("default",), ("work", "stranger"), sample=10).strangers == ()
    assert store.outlook(("default",), ("work",)).strangers == ()


def test_a_claim_that_saw_all_is_the_base_of_the_next(store: MemoryStore) -> None:
    one = ticker(store)
    one.crowded = True
    assert one.since is None
    assert drained(one) == ([], 1)
    assert one.since is not None
    new = enqueue(store, new_spec(1), ago=NOW)
    assert [job.id for job in leased(one)] == [job.id for job in new]


def test_what_was_committed_late_waits_for_a_full_sweep(store: MemoryStore) -> None:
    one = ticker(store)
    one.crowded = True
    drained(one)
    late = due(store, 1)
    assert leased(one) == []
    swept = tick(one, slots=10, full_sweep=True)
    assert [job.id for job in swept.leased] == [job.id for job in late]


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("slots", [1, 7, 25])
def test_a_backlog_is_drained_without_a_pause(
    store: MemoryStore, slots: int, crowded: bool
) -> None:
    """Of two priorities and ages, so that a floor alone would leave some out."""
    enqueue(store, *(new_spec(n, priority=9) for n in range(1, 13)), ago=timedelta(hours=1))
    enqueue(store, *(new_spec(n) for n in range(13, 26)), ago=timedelta(hours=2))
    one = ticker(store)
    one.crowded = crowded
    jobs, _ = drained(one, slots)
    assert len({job.id for job in jobs}) == 25


def test_when_they_are_gone_all_is_as_before(store: MemoryStore) -> None:
    one = ticker(store)
    one.crowded = True
    drained(one)
    due(store, 3)
    one.crowded = False
    assert one.since is None
    assert len(drained(one)[0]) == 3
