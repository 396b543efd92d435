"""A job is leased, not deleted, and nothing of the database is held while its handler runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leasebook.domain.events import Leased
from tests.support.yard import Yard
from tests.worker import app

SESSIONS = """
select state, xact_start < clock_timestamp() - interval '0.3 s' from pg_stat_activity
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
    idle = 0
    for _ in range(LOOKS):
        seen = yard.sql(SESSIONS)
        assert 1 <= len(seen) <= SESSIONS_MAX
        assert not any(is_long for _, is_long in seen)
        idle += all(state == "idle" for state, _ in seen)
    assert idle > LOOKS / 2
    yard.open("go")
    assert yard.over(receipt).state == "done"
    assert yard.rows() == 0
    assert worker.stop() == 0
