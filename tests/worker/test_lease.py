"""A job is leased, not deleted, and nothing of the database is held while its handler runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from leasebook.domain.events import Leased
from tests.support.yard import Yard
from tests.worker import app

SESSIONS = """
select pid, state, xact_start from pg_stat_activity
 where datname = current_database()
   and application_name in ('leasebook worker', 'leasebook heartbeat')
"""
#: One session of the tick thread, one of the heartbeat child: none is there for a handler.
SESSIONS_MAX = 2
LOOKS = 40


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
    # The tick thread and the heartbeat go on with their short transactions meanwhile.
    looks = [yard.sql(SESSIONS) for _ in range(LOOKS)]
    assert {len(seen) for seen in looks} <= {1, SESSIONS_MAX}
    begun = [{(pid, at) for pid, _, at in seen if at is not None} for seen in looks]
    assert not set[tuple[int, datetime]].intersection(*begun), "a transaction that goes on"
    assert any(all(state == "idle" for _, state, _ in seen) for seen in looks)
    yard.open("go")
    assert yard.over(receipt).state == "done"
    assert yard.rows() == 0
    assert worker.stop() == 0
