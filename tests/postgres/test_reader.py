"""What people see of a queue, asked of a queue whose every job is known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from leasebook.domain import InvalidValue, State
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.dsn import InvalidDsn
from leasebook.infra.postgres.reader import PostgresReader, QueueStats
from leasebook.infra.postgres.schema.errors import SchemaIncomplete
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.projections.check import check
from tests.conformance import making
from tests.support.schemas import with_options
from tests.support.standing import fill


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


@pytest.fixture
def reader(database_dsn: str) -> Iterator[PostgresReader]:
    made = PostgresReader(database_dsn)
    yield made
    made.close()


def test_stats_count_every_state_by_queue(reader: PostgresReader, ids: dict[str, UUID]) -> None:
    default, mail, pages = reader.stats()
    assert default == QueueStats("default", 1, 1, 1, 1, 0, 1, 1, 0, default.oldest_due)
    assert mail == QueueStats("mail", 1, 0, 0, 0, 0, 0, 0, 0, mail.oldest_due)
    assert pages == QueueStats("pages", 0, 0, 0, 0, 0, 0, 0, 2, None), "items that nobody collected"
    assert default.oldest_due is not None
    assert timedelta(minutes=59) < reader.now() - default.oldest_due < timedelta(minutes=61)


def test_who_is_blocked_is_neither_due_nor_delayed(
    database_dsn: str, reader: PostgresReader
) -> None:
    with psycopg.connect(database_dsn) as connection:
        orders = [Order(making.new_spec(n, ordering_key="k")) for n in range(3)]
        accept(Schema("leasebook"), connection, orders)
    [queue] = reader.stats()
    assert (queue.due, queue.blocked, queue.delayed) == (1, 2, 0)


def test_a_lease_that_has_ended_still_runs_until_somebody_says_so(
    reader: PostgresReader, ids: dict[str, UUID]
) -> None:
    (running,) = reader.jobs(None, None, "leased", 10)
    assert running.due_at < reader.now(), "leased an hour ago, for ten minutes"
    assert reader.stats()[0].running == 1


def test_an_empty_queue_has_no_stats(reader: PostgresReader) -> None:
    assert reader.stats() == []
    assert reader.jobs(None, None, None, 10) == []
    assert reader.counts() == {}


@pytest.mark.parametrize(
    ("queue", "name", "state", "expected"),
    [
        (None, None, None, "due running retrying held mail delayed grouped"),
        ("default", None, None, "due running retrying held delayed grouped"),
        ("mail", None, None, "mail"),
        ("nosuch", None, None, ""),
        (None, "send", None, "mail"),
        (None, "fold", None, "grouped"),
        (None, None, "queued", "due mail delayed"),
        (None, None, "grouped", "grouped"),
        (None, None, "leased", "running"),
        (None, None, "retry-wait", "retrying"),
        (None, None, "failed", "held"),
        (None, None, "done", ""),
        ("default", "work", "queued", "due delayed"),
    ],
)
def test_jobs_by_queue_name_and_state(
    reader: PostgresReader,
    ids: dict[str, UUID],
    queue: str | None,
    name: str | None,
    state: str | None,
    expected: str,
) -> None:
    found = {job.id for job in reader.jobs(queue, name, state, 100)}
    assert found == {ids[each] for each in expected.split()}


def test_jobs_come_in_order_of_their_time_and_no_more_than_asked(
    reader: PostgresReader, ids: dict[str, UUID]
) -> None:
    jobs = reader.jobs(None, None, None, 100)
    assert [job.due_at for job in jobs] == sorted(job.due_at for job in jobs)
    assert [job.id for job in reader.jobs(None, None, None, 3)] == [job.id for job in jobs[:3]]


def test_a_job_is_read_as_it_was_written(reader: PostgresReader, ids: dict[str, UUID]) -> None:
    (group,) = reader.jobs(None, "fold", None, 10)
    assert group.state is State.GROUPED
    assert group.items == ("0", "1", "2")
    assert group.spec.group == making.GROUP
    (held,) = reader.jobs(None, None, "failed", 10)
    assert held.held
    assert held.spec.args == '{"n":4}'


def test_counts_of_events_and_of_the_audit_log(
    reader: PostgresReader, ids: dict[str, UUID], database_dsn: str
) -> None:
    counts = reader.counts()
    assert counts["enqueued.v1"] == 8
    assert counts["leased.v1"] == 4
    assert "late_write_refused" not in counts
    with psycopg.connect(database_dsn) as connection:
        connection.execute(
            "insert into leasebook.audit_log (kind, detail) values ('late_write_refused', '{}')"
        )
    assert reader.counts()["late_write_refused"] == 1


def test_a_stream_and_a_snapshot(reader: PostgresReader, ids: dict[str, UUID]) -> None:
    assert [each.event.kind for each in reader.stream(ids["done"])] == [
        "enqueued",
        "leased",
        "completed",
    ]
    assert reader.stream(making.job_id(999)) == []
    with reader.snapshot() as snapshot:
        assert list(check(snapshot.log(), snapshot.rows())) == []


def test_a_snapshot_does_not_see_what_comes_later(
    reader: PostgresReader, ids: dict[str, UUID], database_dsn: str
) -> None:
    with reader.snapshot() as snapshot:
        before = len(list(snapshot.log()))
        fill_more(database_dsn)
        assert len(list(snapshot.log())) == before
        assert len(snapshot.rows()) == 7
    with reader.snapshot() as later:
        assert len(list(later.log())) == before + 1


def fill_more(dsn: str) -> None:
    store = PostgresStore(dsn)
    making.enqueue(store, making.new_spec(100))
    store.close()


def test_an_odd_schema_and_an_empty_search_path(empty_database_dsn: str) -> None:
    migrate(empty_database_dsn, 'Jobs-"x"')
    ids = fill(empty_database_dsn, 'Jobs-"x"')
    reader = PostgresReader(with_options(empty_database_dsn, "search_path="), 'Jobs-"x"')
    reader.require_schema()
    assert [stats.queue for stats in reader.stats()] == ["default", "mail", "pages"]
    assert len(reader.stream(ids["held"])) == 3
    with reader.snapshot() as snapshot:
        assert len(snapshot.rows()) == 7
    reader.close()


def test_what_is_refused(empty_database_dsn: str) -> None:
    reader = PostgresReader(empty_database_dsn)
    with pytest.raises(SchemaIncomplete):
        reader.require_schema()
    reader.close()
    with pytest.raises(StoreUnavailable):
        PostgresReader("postgresql://nobody@127.0.0.1:1/x").stats()
    with pytest.raises(InvalidDsn):
        PostgresReader("postgresql://nobody:pass@word@host/x").stats()
    with pytest.raises(InvalidValue):
        PostgresReader(empty_database_dsn, "pg_x")


def test_a_lost_connection_is_made_anew(reader: PostgresReader, database_dsn: str) -> None:
    reader.stats()
    with psycopg.connect(database_dsn, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 30000) from pg_stat_activity"
            " where datname = current_database() and application_name = 'leasebook reader'"
        )
    with pytest.raises(StoreUnavailable):
        reader.stats()
    assert reader.stats() == []
