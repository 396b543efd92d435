"""A job is leased, not deleted, and nothing of the database is held while its handler runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leasebook.domain.events import Leased
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

SESSIONS = """
select application_name, state, backend_xid, backend_xmin from pg_stat_activity
 where datname = current_database() and application_name like 'leasebook worker%%'
"""


@pytest.mark.acceptance("A02")
@pytest.mark.parametrize("handler", ["gated", "gated_thread"])
def test_a02_leased_for_ten_minutes_with_no_transaction_held(yard: Yard, handler: str) -> None:
    with yard.caller() as caller:
        receipt = app.book.enqueue(caller, handler, {"gate": "go"})
    worker = yard.worker()
    yard.began(receipt)
    [leased] = [each for each in yard.events(receipt) if isinstance(each, Leased)]
    assert leased.lease_until - leased.at == timedelta(minutes=10)
    [(state, due, holder)] = yard.sql("select state, due_at, worker from leasebook.jobs")
    assert (state, due, holder) == ("leased", leased.lease_until, worker.id)
    # The tick thread and the heartbeat go on with their short transactions meanwhile; what counts
    # is that between those nothing is open: every session is seen idle, none idle in transaction.
    idle: set[str] = set()

    def every_session_idle() -> bool:
        seen = yard.sql(SESSIONS)
        assert len(seen) == 2, "one session of the tick thread, one of the heartbeat, none pooled"
        assert all(state != "idle in transaction" for _, state, _, _ in seen)
        idle.update(str(index) for index, row in enumerate(seen) if row[1] == "idle")
        return len(idle) == 2

    eventually(every_session_idle, "the sessions of the worker are idle")
    yard.open("go")
    assert yard.over(receipt).state == "done"
    assert yard.rows() == 0
    assert worker.stop() == 0
