"""The plans of the order of keys, on 100,000 jobs of one key and 10,000 held ones of another.

They run twice: with statistics that still call the table empty, and with fresh ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from leasebook.infra.postgres.rows import texts, uuids
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import order, pick
from tests.plugins.database import with_database

from .planned import assert_reads, begun, scans

SCHEMA = Schema("leasebook")
FORMAT = 2
DEEP, HELD = 100_000, 10_000

#: Number 1 waits for its retry; 50,000 are blocked in a chain behind it, the others still due.  The
#: last jobs stand beside that key, two of them after others; of one of those the parent is held.
FILL = f"""
create temporary table made as
select pg_catalog.gen_random_uuid() as id, n, n <= {DEEP} as deep,
       n > {DEEP} and n <= {DEEP + HELD} as held
  from generate_series(1, {DEEP + HELD + 1_000}) as n;
create index on made (n);

insert into "leasebook"."jobs" (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at, held, format, items,
       ordering_key, blocked_by, blocked_due, has_waiter, after)
select made.id, made.n, 'default', 5, 'work', '1', now(), 3, 600, 600, 'hold', 1,
       case when made.held then 'failed' when made.n = 1 then 'retry-wait' else 'queued' end,
       case when made.n = 1 then now() + interval '1 hour'
            when blocked then '9999-12-31T00:00:00+00:00'
            else now() - interval '1 minute' end + made.n * interval '1 microsecond',
       now(), made.held, {FORMAT}, '{{}}',
       case when made.deep then 'deep' when made.held then 'held ' || made.n % 10
            else 'key ' || made.n end,
       case when blocked then before.id end, case when blocked then now() end,
       made.n < {DEEP} / 2 and made.deep,
       case made.n when {DEEP + HELD + 1} then (select id from made where n = 1)
                   when {DEEP + HELD + 2} then (select id from made where n = {DEEP + 1}) end
  from made
 cross join lateral (select made.n > 1 and made.n <= {DEEP} / 2 as blocked) as b
  left join made as before on before.n = made.n - 1
 order by made.n;

insert into "leasebook"."job_events" (job_id, version, at, kind, due_at, data)
select id, 1, now(), 'enqueued.v1', now(), '{{}}' from made order by n;

insert into "leasebook"."group_inbox" (queue, name, group_key, item, spec, ordering_key, sequence)
select 'default', 'work', 'deep', '1', '{{}}', 'deep', 1000000 + n
  from generate_series(1, 1000) as n;

insert into "leasebook"."workers" (id, name, host, pid, capacity, queues, code_version)
values ('w1', 'w1', 'here', 1, 10, '{{}}', '');
"""


@pytest.fixture(scope="module")
def full_dsn(server_dsn: str) -> Iterator[str]:
    name = "leasebook_test_order_plans"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name}")
        try:
            dsn = with_database(server_dsn, name)
            migrate(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                for table in ("jobs", "job_events", "group_inbox"):
                    option = "set (autovacuum_enabled = false)"
                    connection.execute(f"alter table {SCHEMA.table(table)} {option}".encode())
                connection.execute("analyze")
                connection.execute(FILL.encode())
            yield dsn
        finally:
            admin.execute(f"drop database if exists {name} with (force)")


@pytest.fixture(scope="module", params=["stale", "fresh"])
def database(request: pytest.FixtureRequest, full_dsn: str) -> str:
    if request.param == "fresh":
        with psycopg.connect(full_dsn, autocommit=True) as connection:
            connection.execute("analyze")
    return full_dsn


def ids(dsn: str, *numbers: int) -> list[UUID]:
    with psycopg.connect(dsn) as connection:
        asked = "select id from leasebook.jobs where seq = any (%s) order by seq"
        return [row[0] for row in connection.execute(asked, (list(numbers),))]


@pytest.mark.acceptance("Q14")
def test_what_is_ahead_is_one_row_for_each(database: str) -> None:
    wanted = [*range(60_001, 60_499), DEEP + HELD + 1, DEEP + HELD + 2]
    params = {"ids": uuids(ids(database, *wanted))}
    with begun(database) as connection:
        found = scans(connection, order.ahead(SCHEMA), params)
        rows = connection.execute(order.ahead(SCHEMA).encode(), params).fetchall()
    assert sum(row[4] is not None for row in rows) == 498
    # The server tells the average of all loops, rounded.
    assert_reads(
        found, jobs_pkey=502, job_events_pkey=2, jobs_ordering_key=500,
        group_inbox_ordering_key=0, jobs_running_key=0, job_summaries_pkey=0,
    )  # fmt: skip


@pytest.mark.acceptance("Q14")
def test_marks_look_each_row_up(database: str) -> None:
    priors = ids(database, *range(60_000, 60_500))
    params = {"ids": uuids(priors), "priors": uuids(priors), "parents": uuids([])}
    with begun(database) as connection:
        assert_reads(scans(connection, order.mark_waited_for(SCHEMA), params), jobs_pkey=1_000)


@pytest.mark.acceptance("Q14")
def test_who_waits_is_found_by_what_has_ended(database: str) -> None:
    first, held = ids(database, 1, DEEP + 1)
    params = {"blockers": uuids([first]), "parents": uuids([first, held])}
    with begun(database) as connection:
        found = scans(connection, order.waiting(SCHEMA), params)
    assert_reads(found, jobs_blocked=1, jobs_after=2, jobs_pkey=1)


@pytest.mark.acceptance("Q14")
def test_stranded_jobs_are_looked_for_among_the_blocked(database: str) -> None:
    params = {"limit": 1_000, "format": FORMAT}
    with begun(database) as connection:
        found = scans(connection, order.stranded(SCHEMA), params)
    assert_reads(found, jobs_blocked=DEEP // 2, jobs_pkey=DEEP // 2)


@pytest.mark.acceptance("Q14")
def test_the_newest_number_of_a_key_is_one_row_of_each_table(database: str) -> None:
    _lock, newest = order.quiet_key(SCHEMA).split(";\n")
    with begun(database) as connection:
        found = scans(connection, newest, {"key": "deep"})
    assert_reads(found, jobs_ordering_key=1, group_inbox_ordering_key=1)


@pytest.mark.acceptance("Q14")
def test_missing_parents_are_looked_up(database: str) -> None:
    params = {"ids": uuids(ids(database, 1, 2, 3))}
    with begun(database) as connection:
        found = scans(connection, order.missing(SCHEMA), params)
    assert_reads(found, job_events_pkey=3, job_summaries_pkey=0)


@pytest.mark.acceptance("Q14")
@pytest.mark.case("C29")
def test_a_claim_beside_a_key_passes_its_due_jobs_once(database: str) -> None:
    """Those that are blocked are not even passed."""
    params = {
        "queues": texts(["default"]),
        "names": texts(["work"]),
        "since": "-infinity",
        "limit": 10,
        "suspects": 1,
        "without": texts(["deep"]),
        "parents": "{}",
        "format": FORMAT,
        "worker": "w1",
    }
    with begun(database) as connection:
        found = scans(connection, pick.claim_others(SCHEMA), params)
        rows = connection.execute(pick.claim_others(SCHEMA).encode(), params).fetchall()
    assert len(rows) == 10
    assert_reads(found, jobs_claim=DEEP // 2 + 10, jobs_suspect=0, jobs_pkey=0, workers_pkey=1)
