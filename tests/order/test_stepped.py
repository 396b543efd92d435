"""Every meeting of two sessions at a key, stepped in every order with at most two switches.

All of them take minutes; by default some are tried.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count

import psycopg
import pytest

from leasebook.domain import Job
from leasebook.infra.postgres import order
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Report, Succeeded
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.order import free_stranded
from leasebook.infra.worker.tick import Ask
from tests.conformance.making import worker
from tests.plugins.database import assert_lawful

from . import stepping
from .duels import DUELS, Duel, Meeting, ticker
from .stepping import Schedule, schedules

TICKS_MAX = 200
#: One in so many orders is tried, beginning with the first; `make rehearse` tries them all.
EVERY = int(os.environ.get("LEASEBOOK_TEST_ORDER_EVERY", "11"))

UNFINISHED = """
select (select count(*) from leasebook.jobs where not held)
    + (select count(*) from leasebook.group_inbox)
"""
TWO_AT_ONCE = """
select ordering_key from leasebook.jobs
 where state = 'leased' and ordering_key is not null group by 1 having count(*) > 1
"""


class Arena:
    """A database, somebody who looks on, and a worker that finishes what the two have left."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.admin = psycopg.connect(dsn, autocommit=True)
        self.store = PostgresStore(dsn)
        for name in ("A", "B", "survivor"):
            self.store.enroll(worker(name))

    def meet(self, duel: Duel, number: int, schedule: Schedule | None) -> tuple[int, int]:
        """Let two meet, and see that everything comes to its end; how many statements they had."""
        acts = duel(Meeting(self._dsn, number))
        (one, two), lengths = stepping.run(self._dsn, self.admin, acts, schedule)
        assert not self.admin.execute(TWO_AT_ONCE).fetchall(), "two run at once"
        self._finish([*one, *two])
        return lengths

    def _finish(self, running: Sequence[Job]) -> None:
        survivor = ticker(self.store, "survivor")
        for _ in range(TICKS_MAX):
            # What was in somebody's hands is looked for again.
            sweep(self.store, 10)
            free_stranded(self.store)
            reports = [Report(job, Succeeded()) for job in running]
            running = survivor.tick(Ask(reports, (), 10, collect=True, full_sweep=True)).leased
            row = self.admin.execute(UNFINISHED).fetchone()
            if row == (0,):
                return
        left = self.admin.execute(
            "select state, blocked_by, due_at from leasebook.jobs where not held"
        ).fetchall()
        raise AssertionError(f"after {TICKS_MAX} ticks there is still work: {left}")


@pytest.fixture
def arena(database_dsn: str) -> Iterator[Arena]:
    arena = Arena(database_dsn)
    with closing(arena.admin), closing(arena.store):
        yield arena
        # The checker says at the end of the test what ran out of order.
        asked = "select deadlocks from pg_stat_database where datname = current_database()"
        assert arena.admin.execute(asked).fetchone() == (0,)


@pytest.mark.unchecked("jobs start out of order in it, on purpose")
def test_a_worker_that_does_not_ask_for_producers_is_found_out(
    arena: Arena, database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test of the test."""

    def everything(ask: object, schema: object, jobs: Sequence[Job]) -> set[str | None]:
        return {job.spec.ordering_key for job in jobs}

    monkeypatch.setattr(order, "_quiet", everything)
    duel = DUELS["a producer commits, a later job is claimed"]
    numbers = count(1)
    every = list(schedules(arena.meet(duel, 0, None)))

    def meet_until_it_shows() -> None:
        for schedule in [*every[::3], *every[1::3], *every[2::3]]:
            arena.meet(duel, next(numbers), schedule)
            assert_lawful(database_dsn)

    with pytest.raises(AssertionError, match="I8 broken"):
        meet_until_it_shows()


@pytest.mark.slow
@pytest.mark.acceptance("Q14", "E04", "I8")
@pytest.mark.parametrize("duel", DUELS.values(), ids=list(DUELS))
def test_every_order_of_two_sessions(arena: Arena, duel: Duel) -> None:
    numbers = count(1)
    every = list(schedules(arena.meet(duel, 0, None)))
    for schedule in every[::EVERY]:
        try:
            arena.meet(duel, next(numbers), schedule)
        except AssertionError as error:
            raise AssertionError(f"{schedule}: {error}") from error
    print(f"{len(every[::EVERY])} of {len(every)} orders")
