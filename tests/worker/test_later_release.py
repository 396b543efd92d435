"""A stream that a later release has written to neither stops a worker nor takes others with it."""

from __future__ import annotations

import psycopg
import pytest

from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Succeeded

from .ticking import due, kinds, leased, report, tick, ticker

MOVED = """
with gone as (delete from leasebook.jobs where id = %(id)s)
insert into leasebook.job_events (job_id, version, at, kind)
values (%(id)s, 3, clock_timestamp(), 'teleported.v1')
"""


@pytest.mark.unchecked("holds an event of a later release")
def test_a_run_whose_job_a_later_release_has_moved(database_dsn: str) -> None:
    store = PostgresStore(database_dsn)
    one = ticker(store)
    due(store, 2)
    moved, plain = leased(one)
    with psycopg.connect(database_dsn) as connection:
        connection.execute(MOVED, {"id": moved.id})
    ticked = tick(one, report(moved, Succeeded()), report(plain, Succeeded()))
    assert [each.job.id for each in ticked.settled.unrecorded] == [moved.id]
    assert kinds(store, plain) == ["enqueued", "leased", "completed"]
    store.close()
