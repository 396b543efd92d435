"""A session that holds a snapshot keeps dead rows; claims go on at the same pace all the same."""

from __future__ import annotations

import time
from datetime import timedelta

import psycopg
import pytest

from leasebook.infra.ports import Claim
from leasebook.infra.postgres.store import PostgresStore

ROUNDS = 40
ROWS = 500
CLAIM_SECONDS_MAX = 0.020
CHURN = """
insert into leasebook.jobs (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at, items)
select gen_random_uuid(), n, 'default', 5, 'work', '{}', now(), 3, 600, 600, 'hold', 1, 'queued',
       now(), now(), '{}'
  from generate_series(1, %s) as n
"""


@pytest.mark.case("C23")
@pytest.mark.unchecked("the claim table is churned past the log")
def test_claims_keep_their_pace_under_an_old_snapshot(database_dsn: str) -> None:
    store = PostgresStore(database_dsn)
    took: list[float] = []
    floor = None
    with (
        psycopg.connect(database_dsn) as idle,
        psycopg.connect(database_dsn, autocommit=True) as connection,
    ):
        idle.execute("set transaction isolation level repeatable read")
        idle.execute("select count(*) from leasebook.jobs")
        for _ in range(ROUNDS):
            connection.execute(CHURN, (ROWS,))
            with store.transaction() as transaction:
                began = time.perf_counter()
                jobs = transaction.claim(Claim(("default",), ("work",), 10, 1, floor))
                took.append(time.perf_counter() - began)
                assert len(jobs) == 10
                # What the ticker remembers: a second below what it picked last.
                floor = max(job.due_at for job in jobs) - timedelta(milliseconds=50)
            connection.execute("delete from leasebook.jobs")
    store.close()
    # (What makes one claim slower than another is the machine; what every claim pays is ours.)
    assert min(took[-10:]) < CLAIM_SECONDS_MAX, took
