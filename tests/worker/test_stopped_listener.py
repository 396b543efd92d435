"""A worker that is stopped while notifications pour in keeps vacuum from nothing."""

from __future__ import annotations

import signal
from typing import Any

import psycopg
import pytest

from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.postgres.wakeup import LISTENER, channel
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

#: Distinct payloads, so that the server keeps each: together more than sockets buffer.
POUR = "select count(pg_notify(%s, repeat('x', 7000) || n)) from generate_series(1, 3000) as n"
SESSIONS = """
select application_name, wait_event, backend_xmin
  from pg_stat_activity
 where application_name like 'leasebook w%%' and datname = current_database()
"""


def sessions(dsn: str) -> dict[str, tuple[Any, Any]]:
    """The worker's sessions by name: what each waits for, and the snapshot that it holds."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(SESSIONS.encode()).fetchall()
    return {name: (waits, xmin) for name, waits, xmin in found}


@pytest.mark.fault
@pytest.mark.case("C18")
def test_c18_a_stopped_worker_holds_back_no_snapshot(yard: Yard) -> None:
    worker = yard.worker()
    eventually(lambda: LISTENER in sessions(yard.dsn), "the worker listens")
    with yard.caller() as caller:
        first = app.quick.enqueue(caller)
    assert yard.over(first).outcome == "done"
    worker.signal(signal.SIGSTOP)
    for _ in range(5):
        yard.sql(POUR, channel(Schema("leasebook")))
    stuck = eventually(
        lambda: (found := sessions(yard.dsn))[LISTENER][0] == "ClientWrite" and found,
        "the server cannot write to the listener any more",
    )
    assert stuck
    assert stuck[LISTENER][1] is not None, "this is why somebody must end it"

    # Another worker's beat: here it is less patient than the 30 s of a real one.
    other = PostgresStore(yard.dsn, settings=Settings(silence_seconds=0.2))

    def free() -> bool:
        other.beats()
        return all(xmin is None for _, xmin in sessions(yard.dsn).values())

    eventually(free, "no session of the stopped worker holds a snapshot")
    other.close()
    assert LISTENER not in sessions(yard.dsn)

    worker.signal(signal.SIGCONT)
    eventually(lambda: LISTENER in sessions(yard.dsn), "it listens again when it goes on")
    with yard.caller() as caller:
        second = app.quick.enqueue(caller)
    assert yard.over(second).outcome == "done"
    assert worker.stop() == 0


@pytest.mark.case("C18")
def test_c18_a_listener_that_reads_is_left_alone(yard: Yard) -> None:
    """However long it has listened, and whoever else waits to write to a client."""
    yard.worker()
    eventually(lambda: LISTENER in sessions(yard.dsn), "the worker listens")
    ((before,),) = yard.sql(
        "select pid from pg_stat_activity where application_name = %s"
        " and datname = current_database()",
        LISTENER,
    )
    store = PostgresStore(yard.dsn, settings=Settings(silence_seconds=0.001))
    for _ in range(20):
        store.beats()
    store.close()
    ((after,),) = yard.sql(
        "select pid from pg_stat_activity where application_name = %s"
        " and datname = current_database()",
        LISTENER,
    )
    assert before == after
