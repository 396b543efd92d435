"""The plans of the hot statements on 100,000 due and 200,000 delayed rows.

They run twice: with statistics that still call every table empty, as after a burst, and with fresh
ones.  What is bounded is what is read, not only what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from leasebook.domain import change
from leasebook.domain.commands import Complete, Fail, TakeLease
from leasebook.domain.job import Job
from leasebook.domain.log import Change
from leasebook.infra.postgres import batches
from leasebook.infra.postgres.rows import job_of, numbers, texts, uuids
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import append, collect, look, pick
from tests.plugins.database import with_database

from .planned import assert_reads, begun, scans

SCHEMA = Schema("leasebook")

FILL = """
create temporary table made as
select pg_catalog.gen_random_uuid() as id, n from generate_series(1, 302200) as n;

insert into "leasebook"."jobs" (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at, suspect, held, starts, attempts,
       interruptions, lease, worker, started_at, group_key, group_window, group_max_hold,
       group_max_size, hold_until, items)
select id, n, 'default', 5, 'work', '{"n": 1}', now(), 3, 600, 600, 'hold',
       case when n > 301000 and n <= 302000 then 2 else 1 end,
       case when n <= 301000 then 'queued' when n <= 302000 then 'leased' else 'grouped' end,
       case when n <= 100000 then now() - interval '1 minute'
            when n <= 300000 then now() + interval '1 day'
            when n <= 301000 then now() - interval '1 minute'
            when n <= 301500 then now() - interval '1 second'
            else now() + interval '10 minutes' end + n * interval '1 microsecond',
       now(), n > 300000 and n <= 301000, false,
       (n > 301000)::int, 0, (n > 300000 and n <= 301000)::int,
       case when n > 301000 and n <= 302000 then 2 end,
       case when n > 301000 and n <= 302000 then 'w' || n % 10 end,
       case when n > 301000 and n <= 302000 then now() end,
       case when n > 302000 then 'key ' || n end,
       case when n > 302000 then 10 end, case when n > 302000 then 60 end,
       case when n > 302000 then 50 end, case when n > 302000 then now() end,
       case when n > 302000 then array['1']::json[] end
  from made order by n;

insert into "leasebook"."group_inbox" (queue, name, group_key, item, spec)
select 'default', 'work', 'key ' || 302001 + n % 200, '1', '{}'
  from generate_series(1, 100000) as n;
"""


FILL_EVENTS = """
insert into "leasebook"."workers" (id, name, host, pid, capacity, queues, code_version)
values ('w1', 'w1', 'here', 1, 10, '{}', '');
insert into "leasebook"."job_events" (job_id, version, at, kind, due_at, data)
select id, 1, now(), 'enqueued.v1', now(), '{}' from made order by n;
"""

#: All goes but the row at the very end, which keeps the emptied pages in the table.
DRAIN = """
delete from "leasebook"."jobs" where seq < 302200;
delete from "leasebook"."group_inbox" where id < (select max(id) from "leasebook"."group_inbox");
drop table made;
"""


@pytest.fixture(scope="module")
def full_dsn(server_dsn: str) -> Iterator[str]:
    """A database whose statistics were taken when it had been drained, and which is full again.

    Vacuum found large tables with next to no rows, so the planner expects one row of them.
    """
    name = "leasebook_test_plans"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name}")
        try:
            dsn = with_database(server_dsn, name)
            migrate(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                for table in ("jobs", "job_events", "group_inbox"):
                    quoted = SCHEMA.table(table)
                    option = "autovacuum_enabled = false"
                    connection.execute(f"alter table {quoted} set ({option})".encode())
                connection.execute(FILL)
                connection.execute(DRAIN)
                connection.execute("vacuum analyze")
                connection.execute('delete from "leasebook"."jobs"')
                connection.execute(FILL)
                connection.execute(FILL_EVENTS)
            yield dsn
        finally:
            admin.execute(f"drop database if exists {name} with (force)")


@pytest.fixture(scope="module", params=["stale", "fresh"])
def database(request: pytest.FixtureRequest, full_dsn: str) -> str:
    """The database, before and after its statistics are brought up to date."""
    if request.param == "fresh":
        with psycopg.connect(full_dsn, autocommit=True) as connection:
            connection.execute("analyze")
    return full_dsn


def jobs(dsn: str, where: str, limit: int) -> list[Job]:
    """Jobs as the store reads them."""
    ids = f"select id from {SCHEMA.table('jobs')} where {where} order by seq limit {limit}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        cursor = connection.cursor()
        given = uuids(row[0] for row in cursor.execute(ids.encode()))
        text = (
            look.rows(SCHEMA)
            .replace("j.args", "j.args::text")
            .replace("j.items", "j.items::text[]")
        )
        return [job_of(row) for row in cursor.execute(text.encode(), {"ids": given})]


def claim_params(limit: int) -> dict[str, object]:
    return {
        "queues": texts(["other", "default"]),
        "names": texts(["work"]),
        "since": "-infinity",
        "limit": limit,
        "suspects": 1,
        "format": 1,
        "worker": "w1",
    }


@pytest.mark.parametrize("limit", [1, 500])
def test_claim_reads_what_it_takes(database: str, limit: int) -> None:
    with begun(database) as connection:
        found = scans(connection, pick.claim(SCHEMA), claim_params(limit))
        among = scans(connection, pick.claim_among(SCHEMA), claim_params(limit))
    assert_reads(found, jobs_claim=limit, jobs_suspect=1, workers_pkey=1)
    assert_reads(among, jobs_claim=limit, jobs_suspect=1, jobs_pkey=1, workers_pkey=1)


def test_claim_steps_over_what_others_hold(database: str) -> None:
    with begun(database) as other, begun(database) as connection:
        first = other.execute(pick.claim(SCHEMA).encode(), claim_params(500)).fetchall()
        found = scans(connection, pick.claim(SCHEMA), claim_params(500))
        second = connection.execute(pick.claim(SCHEMA).encode(), claim_params(500)).fetchall()
    # The row without a time is of the suspect, which nobody has locked.
    assert len({row[1] for row in first + second if row[0] is not None}) == 1000
    assert_reads(found, jobs_claim=1000, jobs_suspect=1, workers_pkey=1)


def test_claim_with_nothing_due_reads_no_delayed_row(database: str) -> None:
    with begun(database) as connection:
        params = {**claim_params(500), "since": "now", "suspects": 0}
        found = scans(connection, pick.claim(SCHEMA), params)
    assert_reads(found, jobs_claim=0, jobs_suspect=0, workers_pkey=1)


def test_outlook_reads_one_row_of_each_kind(database: str) -> None:
    params = {
        "queues": texts(["other", "default"]),
        "names": texts(["work"]),
        "since": "-infinity",
        "format": 1,
    }
    with begun(database) as connection:
        found = scans(connection, look.outlook(SCHEMA), params)
    assert_reads(found, jobs_claim=1, jobs_suspect=1, jobs_leased=1, group_inbox_pkey=1)


@pytest.mark.acceptance("A12")
def test_strangers_that_were_seen_are_not_passed_again(database: str) -> None:
    """100,000 due jobs of names that this worker does not know; it looks behind them."""
    with psycopg.connect(database) as connection:
        row = connection.execute("select now() - interval '1 second'").fetchone()
    assert row is not None
    asked = {"names": texts(["unknown here"]), "since": row[0]}
    with begun(database) as connection:
        claimed = scans(connection, pick.claim(SCHEMA), claim_params(500) | asked)
        seen = scans(connection, look.outlook(SCHEMA), claim_params(500) | asked)
    assert sum(scan.read for scan in claimed if scan.index == "jobs_claim") == 0
    # The look goes on to the delayed ones, none of which is ours either.
    assert all(scan.index is not None for scan in seen)


@pytest.mark.acceptance("A12")
def test_strangers_are_looked_for_among_the_first_only(database: str) -> None:
    params = claim_params(1000) | {"names": texts(["unknown here"])}
    with begun(database) as connection:
        found = scans(connection, look.strangers(SCHEMA), params)
        both = look.outlook_and_strangers(SCHEMA).encode()
        rows = connection.execute(both, params | {"since": "infinity"}).fetchall()
    assert [row[-2:] for row in rows] == [(["work"], [None])]
    assert_reads(found, jobs_claim=2000)


def test_overdue_reads_ended_leases_only(database: str) -> None:
    with begun(database) as connection:
        found = scans(connection, pick.overdue(SCHEMA), {"limit": 200, "format": 1})
    assert_reads(found, jobs_leased=200)


def test_leased_by_reads_leased_rows_only(database: str) -> None:
    params = {"worker": "w1", "limit": 50, "format": 1}
    with begun(database) as connection:
        found = scans(connection, pick.leased_by(SCHEMA), params)
    assert_reads(found, jobs_leased=1000)


def test_collecting_reads_the_oldest_items_and_the_groups_of_their_keys(database: str) -> None:
    params = {"limit": 1000, "keys": 500, "schema": "leasebook", "format": 1}
    with begun(database) as connection:
        keys = connection.execute(collect.lock_keys(SCHEMA).encode(), params).fetchall()
        assert len(keys) == 200
        assert_reads(scans(connection, collect.lock_keys(SCHEMA), params), group_inbox_pkey=1000)
        queues, names, group_keys, ids = zip(*keys, strict=True)
        asked = {
            "queues": texts(queues),
            "names": texts(names),
            "group_keys": texts(group_keys),
            "format": 1,
            "joined": "items_joined.v1",
        }
        groups = scans(connection, collect.open_groups(SCHEMA), asked)
        assert_reads(groups, jobs_open_group=400, job_events_pkey=200)
        taken = {"ids": numbers(each for some in ids for each in some)}
        items = scans(connection, collect.take_items(SCHEMA), taken)
        assert_reads(items, group_inbox_pkey=1000)


def test_appends_look_each_row_up(database: str) -> None:
    waiting = jobs(database, "state = 'queued' and due_at <= now() and not suspect", 500)
    running = jobs(database, "state = 'leased'", 500)
    assert len(waiting) == len(running) == 500
    at = max(job.due_at for job in waiting)
    taken = batches.in_order(change(job, TakeLease(at, "w")) for job in waiting)
    done = batches.in_order(
        change(job, Complete(at, job.lease.token)) for job in running if job.lease
    )
    failed = batches.in_order(
        change(job, Fail(at, job.lease.token, "no", 60)) for job in running if job.lease
    )
    for statement, params in (
        (append.lease, batches.leases(taken)),
        (append.complete, batches.completions(done)),
        (append.end, batches.ends(done)),
        (append.update, batches.updates(failed)),
        (append.lock, {"ids": uuids(each.after.id for each in failed)}),
    ):
        assert params is not None
        with begun(database) as connection:
            found = scans(connection, statement(SCHEMA), params)
        assert_reads(found, jobs_pkey=500)


def test_births_look_each_stream_up(database: str) -> None:
    running = jobs(database, "state = 'queued'", 500)
    births = batches.in_order(
        Change(None, change(job, TakeLease(job.due_at, "w")).events, job) for job in running
    )
    with begun(database) as connection:
        found = scans(connection, append.birth(SCHEMA), batches.births(births))
    assert_reads(found, job_events_pkey=500)


def test_loads_look_each_job_up(database: str) -> None:
    ids = uuids(job.id for job in jobs(database, "state = 'leased'", 50))
    with begun(database) as connection:
        assert_reads(scans(connection, look.rows(SCHEMA), {"ids": ids}), jobs_pkey=50)
        assert_reads(scans(connection, look.streams(SCHEMA), {"ids": ids}), job_events_pkey=50)
