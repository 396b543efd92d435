"""A worker that the system has stopped hears nothing, and the doctor names its session."""

from __future__ import annotations

import signal

import pytest

from leasebook.infra.postgres.doctor import examine
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import PostgresWakeup
from leasebook.projections.doctor import diagnose
from leasebook.projections.health import Thresholds
from tests.support.workers import eventually
from tests.support.yard import Yard

RINGS = 2_000
OURS = "datname = current_database() and application_name like 'leasebook%%'"


@pytest.mark.case("C18")
@pytest.mark.fault
def test_the_listener_of_a_stopped_worker_is_named_by_its_pid(yard: Yard) -> None:
    worker = yard.worker("--no-death-detection")
    worker.tells("worker started")
    listening = f"select pid from pg_stat_activity where {OURS} and query like 'listen%%'"
    eventually(lambda: yard.sql(listening), "it listens")
    ((listener,),) = yard.sql(listening)
    worker.signal(signal.SIGSTOP, heart=True)
    try:
        bell = PostgresWakeup(yard.dsn, "leasebook")
        for _ in range(RINGS):
            bell.ring()
        bell.close()
        told = eventually(lambda: stuck(yard.dsn), "the doctor sees that its client does not read")
        assert f"pid {listener} " in (told or "")
        # It may hold the snapshot by which it read the rings.  What was stopped in the middle of a
        # transaction is ended by the server, as every transaction of ours bounds its pauses.
        held = f"select pid from pg_stat_activity where {OURS} and backend_xmin is not null"
        eventually(lambda: set(yard.sql(held)) <= {(listener,)}, "nothing else holds a snapshot")
    finally:
        worker.signal(signal.SIGCONT, heart=True)
    assert worker.stop() == 0


def stuck(dsn: str) -> str | None:
    """What the doctor says of a client that does not read."""
    found = diagnose(examine(dsn, Schema("leasebook")), Thresholds(snapshot_seconds=0.0))
    return next((each.seen for each in found if each.code == "stuck_client"), None)
