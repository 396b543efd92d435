"""A thousand leases that end at once: a handful of statements, one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from leasebook.domain import change
from leasebook.domain.commands import Enqueue, TakeLease
from leasebook.domain.job import JobSpec, Policy
from leasebook.domain.values import OnExpired
from leasebook.infra.app.ids import new_id
from leasebook.infra.postgres.connection import Link
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.expiry import sweep

JOBS = 1_000
#: Who leads, which are overdue, their ends, their evidence.
STATEMENTS = 4
#: Beside jobs that are run again: the rows are locked in order first, and those are updated.
STATEMENTS_MIXED = 6


@pytest.fixture
def store(database_dsn: str) -> Iterator[PostgresStore]:
    made = PostgresStore(database_dsn)
    yield made
    made.close()


def overdue(store: PostgresStore, *policies: Policy) -> None:
    """Jobs whose leases ended long ago, with these policies in turn."""
    with store.transaction() as tx:
        at = tx.at - timedelta(days=1)
        births = [
            change(None, Enqueue(at, JobSpec(new_id(), "work", "{}", at, policy=policy)))
            for _ in range(JOBS // len(policies))
            for policy in policies
        ]
        assert not tx.append(births)
        assert not tx.append([change(each.after, TakeLease(at, "dead")) for each in births])


@pytest.mark.acceptance("P06")
@pytest.mark.parametrize("mixed", [False, True])
def test_p06_a_thousand_leases_of_a_type_that_aborts_end_in_bulk(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, mixed: bool
) -> None:
    aborts = Policy(on_expired=OnExpired.ABORT)
    overdue(store, *((aborts, Policy()) if mixed else (aborts,)))
    asked: list[str] = []
    ask = Link.ask

    def counted(link: Link, statement: str, params: object) -> object:
        asked.append(statement)
        return ask(link, statement, params)  # type: ignore[arg-type]

    monkeypatch.setattr(Link, "ask", counted)
    changes = sweep(store, JOBS)
    assert len(changes) == JOBS
    assert len(asked) == (STATEMENTS_MIXED if mixed else STATEMENTS), "\n".join(asked)
    monkeypatch.undo()
    with store.transaction() as tx:
        assert tx.overdue(JOBS) == []
